#include "plan/cost/stage_memo.h"

#include <utility>

#include "model/passes/passes.h"
#include "plan/job/key_schema.h"
#include "plan/job/violation.h"
#include "plan/layout/mesh.h"

namespace troupe {
namespace {

// The values of the programs that are kept, some 1 KB each.
constexpr size_t kMostValues = size_t{1} << 16;

// The position in an island at which the ranks of a stage begin, as far as it decides which of
// their groups cross islands: where stages divide an island, none does.
int PositionInIsland(const Mesh& mesh, const v1::DeviceProfile& profile, int pipe_rank) {
  const int stage_ranks = mesh.ranks() / mesh.degree(model::Axis::kPipe);
  if (profile.devices_per_island() % stage_ranks == 0) return 0;
  return pipe_rank * stage_ranks % profile.devices_per_island();
}

// The properties on which a stage's program, memory and time depend.
std::string KindOfStage(const v1::Plan& plan, const v1::DeviceProfile& profile, int pipe_rank) {
  // Returns how many ranks further the neighbouring chunk is; 0: on this rank, or there is none.
  const auto distance = [&](int chunk) {
    if (chunk < 0 || chunk >= plan.chunks_size()) return 0;
    return plan.chunks(chunk).pipe_rank() - pipe_rank;
  };
  std::string kind;
  for (const auto& chunk : plan.chunks()) {
    if (chunk.pipe_rank() != pipe_rank) continue;
    kind += fmt::format("{}{}{}<{}>{} ", chunk.has_embedding() ? "e" : "", chunk.blocks(),
                        chunk.has_head() ? "h" : "", distance(chunk.chunk() - 1),
                        distance(chunk.chunk() + 1));
  }
  return fmt::format("{}{} {} {}", kind, plan.schedule().interleaves_pairs(),
                     plan.tensor_parallel_parts(),
                     PositionInIsland(Mesh(plan.mesh()), profile, pipe_rank));
}

// Gives the chunks of `program`, which was built for a stage of the same kind, the numbers that
// those of `pipe_rank` have in `plan`: readers find the neighbouring chunks by them.
void Renumber(const v1::Plan& plan, int pipe_rank, model::Program* program) {
  size_t index = 0;
  for (const auto& chunk : plan.chunks()) {
    if (chunk.pipe_rank() == pipe_rank) program->chunks[index++].chunk = chunk.chunk();
  }
}

}  // namespace

StatusOr<double> PeakFor(const v1::TrainingSpec& training, const v1::DeviceProfile& profile) {
  const std::string& dtype = training.compute_dtype();
  const bool bfloat16 = DecodeWord<v1::ComputeDtype>(dtype) == v1::COMPUTE_DTYPE_BFLOAT16;
  const double peak =
      bfloat16 ? profile.bfloat16_flops_per_second() : profile.float32_flops_per_second();
  if (peak > 0) return peak;
  return RefuseField(StatusCode::kInvalidArgument, "training.compute_dtype",
                     "is {}, but {}_flops_per_second is absent in the device profile {}", dtype,
                     dtype, profile.name());
}

StatusOr<StageMemo::Stage*> StageMemo::StageOf(const v1::Plan& plan, const StageRun& run) {
  std::string kind = KindOfStage(plan, profile_, run.pipe_rank);
  const auto known = stages_.find(kind);
  if (known != stages_.end()) {
    Renumber(plan, run.pipe_rank, &known->second.program);
    return &known->second;
  }
  TROUPE_ASSIGN_OR_RETURN(model::Program program,
                          BuildStage(job_, plan, run.pipe_rank, /*runs=*/false));
  if (values_ + program.values.size() > kMostValues) {
    stages_.clear();
    values_ = 0;
  }
  values_ += program.values.size();
  Stage& stage = stages_[std::move(kind)];
  stage.program = std::move(program);
  return &stage;
}

StatusOr<const StageMemory*> StageMemo::MemoryOf(const v1::Plan& plan, const StageRun& run) {
  TROUPE_ASSIGN_OR_RETURN(Stage* const stage, StageOf(plan, run));
  std::optional<StageMemory>& memory = stage->memory[run.split_backward ? 1 : 0];
  if (memory) return &*memory;
  if (run.split_backward && !stage->is_split) {
    model::SplitBackward(stage->program);
    stage->is_split = true;
  }
  memory = MemoryOfStage(job_, plan, stage->program, run.split_backward);
  return &*memory;
}

StatusOr<const StageTime*> StageMemo::TimeOf(const v1::Plan& plan, const StageRun& run) {
  TROUPE_ASSIGN_OR_RETURN(const double peak, peak_);
  TROUPE_ASSIGN_OR_RETURN(Stage* const stage, StageOf(plan, run));
  std::optional<StageTime>& time = stage->time[run.split_backward ? 1 : 0];
  if (!time) time = TimeOfStage(plan, profile_, peak, run, stage->program);
  return &*time;
}

}  // namespace troupe
