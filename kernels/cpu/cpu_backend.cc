#include "kernels/cpu/cpu_backend.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "kernels/backend/immediate_executable.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/preparation.h"

namespace troupe::kernels {
namespace {

class CpuExecutable : public ImmediateExecutable {
 public:
  CpuExecutable(const model::Program& program, const model::MemoryPlan& plan,
                const FindCommunicator& find_communicator, cpu::Level level, int threads)
      : program_(program),
        plan_(plan),
        find_communicator_(find_communicator),
        preparation_(program_, plan_, find_communicator_, level, threads) {}

  Status Prepare() {
    TROUPE_RETURN_IF_ERROR(preparation_.Measure());
    pieces_.resize(program_.ops.size());
    for (size_t chunk = 0; chunk < pieces_.size(); ++chunk) {
      for (const std::vector<model::Op>& ops : program_.ops[chunk]) {
        std::vector<cpu::Instructions>& buffers = pieces_[chunk].emplace_back();
        for (int buffer = 0; buffer < plan_.buffers[chunk]; ++buffer) {
          TROUPE_ASSIGN_OR_RETURN(cpu::Instructions made, preparation_.Make(ops, buffer));
          buffers.push_back(std::move(made));
        }
      }
    }
    TROUPE_ASSIGN_OR_RETURN(update_, preparation_.Make(program_.update, 0));
    TROUPE_ASSIGN_OR_RETURN(initialize_, preparation_.Make(program_.initialize, 0));
    return OkStatus();
  }

  Status Run(int chunk_index, model::Piece piece, int buffer, const RunOptions& options) override {
    return RunAll(pieces_[chunk_index][static_cast<int>(piece)][buffer],
                  program_.Ops(chunk_index, piece), buffer, options);
  }
  Status RunUpdate() override { return RunAll(update_, program_.update, 0, {}); }
  Status RunInitialize() override { return RunAll(initialize_, program_.initialize, 0, {}); }

  void Observe(OperationObserver* observer) override { observer_ = observer; }

  void* Address(model::ValueId value, int buffer) override {
    return preparation_.Address(value, buffer);
  }

  Status Write(model::ValueId value, int buffer, std::span<const std::byte> bytes) override {
    TROUPE_RETURN_IF_ERROR(CheckSize(value, bytes.size()));
    std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(Address(value, buffer)));
    return OkStatus();
  }
  Status Read(model::ValueId value, int buffer, std::span<std::byte> bytes) override {
    TROUPE_RETURN_IF_ERROR(CheckSize(value, bytes.size()));
    std::copy_n(static_cast<const std::byte*>(Address(value, buffer)), bytes.size(), bytes.data());
    return OkStatus();
  }

  Status Copy(model::ValueId from, int from_buffer, model::ValueId to, int to_buffer) override {
    std::copy_n(static_cast<const std::byte*>(Address(from, from_buffer)),
                program_.value(from).bytes(), static_cast<std::byte*>(Address(to, to_buffer)));
    return OkStatus();
  }

  bool is_host_memory() const override { return true; }
  Status ReadPart(model::ValueId value, int64_t offset_bytes, std::span<std::byte> bytes) override {
    std::copy_n(static_cast<const std::byte*>(Address(value, 0)) + offset_bytes, bytes.size(),
                bytes.data());
    return OkStatus();
  }

  const char* CurrentOperation() const override { return current_.load(std::memory_order_relaxed); }

  const std::vector<std::string>& fallbacks() const { return preparation_.fallbacks(); }
  const ExecutedMatmuls& executed_matmuls() const { return preparation_.executed_matmuls(); }

 protected:
  StatusOr<std::span<std::byte>> Memory(model::ValueId value, int buffer) override {
    return std::span(static_cast<std::byte*>(Address(value, buffer)),
                     static_cast<size_t>(program_.value(value).bytes()));
  }

 private:
  Status CheckSize(model::ValueId value, size_t bytes) const {
    const model::Value& v = program_.value(value);
    if (static_cast<int64_t>(bytes) == v.bytes()) return OkStatus();
    return InvalidArgument("{} has {} bytes, not {}", v.name, v.bytes(), bytes);
  }

  // Runs the instructions of `ops`, one per op.
  Status RunAll(const cpu::Instructions& instructions, const std::vector<model::Op>& ops,
                int buffer, const RunOptions& options) {
    const size_t end = EndOfRun(options, instructions.size());
    for (auto i = static_cast<size_t>(options.first_op); i < end; ++i) {
      const std::unique_ptr<cpu::Instruction>& instruction = instructions[i];
      if (options.evaluate && instruction->gradient_in_forward) continue;
      if (instruction->last_microbatch && !options.last_microbatch) continue;
      current_.store(instruction->name.c_str(), std::memory_order_relaxed);
      if (Status status = instruction->Run(options); !status.ok()) {
        return Annotate(status, instruction->name);
      }
      if (observer_ != nullptr) observer_->Ran(ops[i], instruction->name.c_str(), buffer);
    }
    return OkStatus();
  }

  const model::Program& program_;
  const model::MemoryPlan& plan_;
  const FindCommunicator find_communicator_;
  cpu::Preparation preparation_;
  std::vector<std::vector<std::vector<cpu::Instructions>>> pieces_;  // [chunk][piece][buffer]
  cpu::Instructions update_;
  cpu::Instructions initialize_;
  std::atomic<const char*> current_ = "";
  OperationObserver* observer_ = nullptr;
};

}  // namespace

StatusOr<std::unique_ptr<CpuBackend>> CpuBackend::Make(const CpuOptions& options) {
  if (options.threads < 1)
    return InvalidArgument("threads is {}, must be at least 1", options.threads);
  if (options.level) {
    if (*options.level > cpu::HighestLevel()) {
      return InvalidArgument("kernel level {} is above this processor's level {}",
                             cpu::Name(*options.level), cpu::Name(cpu::HighestLevel()));
    }
    return std::unique_ptr<CpuBackend>(new CpuBackend(*options.level, options.threads));
  }
  TROUPE_ASSIGN_OR_RETURN(const cpu::Level level, cpu::LevelFromEnvironment());
  if (level < cpu::HighestLevel()) TROUPE_RETURN_IF_ERROR(cpu::LimitLibrary(level));
  return std::unique_ptr<CpuBackend>(new CpuBackend(level, options.threads));
}

StatusOr<std::unique_ptr<Executable>> CpuBackend::Prepare(
    const model::Program& program, const model::MemoryPlan& plan,
    const FindCommunicator& find_communicator) {
  if (plan.locations.size() != program.values.size()) {
    return InvalidArgument("the memory plan places {} values, but the program has {}",
                           plan.locations.size(), program.values.size());
  }
  auto executable =
      std::make_unique<CpuExecutable>(program, plan, find_communicator, level_, threads_);
  TROUPE_RETURN_IF_ERROR(executable->Prepare());
  fallbacks_.insert(fallbacks_.end(), executable->fallbacks().begin(),
                    executable->fallbacks().end());
  executed_matmuls_ = executable->executed_matmuls().List();
  return std::unique_ptr<Executable>(std::move(executable));
}

}  // namespace troupe::kernels
