#include "kernels/xla/testing/slice_backend.h"

#include <chrono>
#include <numeric>
#include <string>
#include <utility>

#include "kernels/xla/runtime/xla_backend.h"

namespace troupe::kernels::xla {
namespace {

constexpr std::chrono::seconds kLimit(60);  // other ranks may make their programs first

int RanksOfStage(const model::MeshView& mesh) {
  int ranks = 1;
  for (int a = 0; a < model::kNumAxes; ++a) {
    if (static_cast<model::Axis>(a) != model::Axis::kPipe) ranks *= mesh.degrees.of[a];
  }
  return ranks;
}

class SliceBackend : public Backend {
 public:
  SliceBackend(ProgramCache& programs, SliceMeeting& meeting, const StepUse& use)
      : programs_(programs), meeting_(meeting), use_(use) {}

  std::string kernel_level() const override { return "slice"; }
  StatusOr<std::unique_ptr<Executable>> Prepare(
      const model::Program& program, const model::MemoryPlan& plan,
      const FindCommunicator& find_communicator) override {
    const int ranks = RanksOfStage(program.mesh), number = model::RankNumber(program.mesh);
    XlaOptions options;
    options.use = use_;
    options.slice.partition = number % ranks;
    options.slice.devices.resize(static_cast<size_t>(ranks));
    std::iota(options.slice.devices.begin(), options.slice.devices.end(),
              number - options.slice.partition);
    TROUPE_ASSIGN_OR_RETURN(options.slice.programs, meeting_.Meet(program));
    TROUPE_ASSIGN_OR_RETURN(backend_, XlaBackend::Make(programs_, options));
    const bool is_all = program.mesh.degrees[model::Axis::kPipe] == 1;
    return backend_->Prepare(program, plan, is_all ? nullptr : find_communicator);
  }
  const std::vector<std::string>& fallbacks() const override { return none_; }
  const std::vector<std::string>& implementations() const override { return none_; }
  std::vector<ExecutedMatmul> executed_matmuls() const override { return {}; }
  PreparationCounts preparation_counts() const override { return {}; }

 private:
  ProgramCache& programs_;
  SliceMeeting& meeting_;
  const StepUse use_;
  std::unique_ptr<XlaBackend> backend_;
  const std::vector<std::string> none_;
};

}  // namespace

StatusOr<SliceMeeting::Programs> SliceMeeting::Meet(const model::Program& program) {
  const int ranks = RanksOfStage(program.mesh);
  std::unique_lock lock(mutex_);
  std::shared_ptr<Stage>& entry = stages_[program.mesh.coordinates[model::Axis::kPipe]];
  if (entry == nullptr) entry = std::make_shared<Stage>();
  const std::shared_ptr<Stage> stage = entry;
  stage->came.emplace(model::RankNumber(program.mesh) % ranks, program);
  if (static_cast<int>(stage->came.size()) == ranks) {
    std::vector<model::Program> all;
    for (auto& [number, of_rank] : stage->came) all.push_back(std::move(of_rank));
    stage->all = std::make_shared<const std::vector<model::Program>>(std::move(all));
    entry = nullptr;
    all_came_.notify_all();
  }
  if (!all_came_.wait_for(lock, kLimit, [&] { return stage->all != nullptr; })) {
    return Status(StatusCode::kDeadlineExceeded,
                  fmt::format("{} of the {} ranks of a stage have prepared their programs",
                              stage->came.size(), ranks));
  }
  return stage->all;
}

std::unique_ptr<Backend> MakeSliceBackend(ProgramCache& programs, SliceMeeting& meeting,
                                          const StepUse& use) {
  return std::make_unique<SliceBackend>(programs, meeting, use);
}

}  // namespace troupe::kernels::xla
