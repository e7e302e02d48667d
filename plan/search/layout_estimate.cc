#include "plan/search/layout_estimate.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/cost/stage_cost.h"
#include "plan/layout/mesh.h"
#include "plan/make_plan.h"
#include "plan/validate/stage_inputs.h"

namespace troupe {
namespace {

// The properties on which a stage's program and time depend: the contents of its chunks, which
// neighbouring chunks are on its rank, and its first rank's position in the island. Its memory also
// depends on the number of live microbatches.
std::string KindOfStage(const v1::Plan& plan, const v1::DeviceProfile& profile, int pipe_rank,
                        bool split_backward) {
  const auto is_here = [&](int chunk) {
    return chunk >= 0 && chunk < plan.chunks_size() && plan.chunks(chunk).pipe_rank() == pipe_rank;
  };
  std::string kind;
  for (const auto& chunk : plan.chunks()) {
    if (chunk.pipe_rank() != pipe_rank) continue;
    kind += fmt::format("{}{}{}{}{} ", chunk.has_embedding() ? "e" : "", chunk.blocks(),
                        chunk.has_head() ? "h" : "", is_here(chunk.chunk() - 1) ? "<" : "",
                        is_here(chunk.chunk() + 1) ? ">" : "");
  }
  const int first = Mesh(plan.mesh()).RankOf({{pipe_rank, 0, 0, 0, 0, 0}});
  return fmt::format("{}{} {}", kind, split_backward, first % profile.devices_per_island());
}

struct Stage {
  StageMemory memory;
  StageTime time;
};

// A lower bound on the step time under any schedule, from the stages added so far.
class StepBound {
 public:
  StepBound(int microbatches, bool split_backward)
      : microbatches_(microbatches), split_backward_(split_backward) {}

  // Adds the next stage. It begins with its first chunk, which waits for the forward of every chunk
  // before it; where I and W are not split it also ends with that chunk, and every chunk before it
  // waits for that.
  void Add(const StageTime& stage) {
    double busy = 0;
    for (const ActionCosts& chunk : stage.chunks) {
      busy += chunk.forward + chunk.input_gradient + chunk.weight_gradient;
    }
    in_schedule_ = std::max(in_schedule_, waits_ + microbatches_ * busy);
    outside_schedule_ = std::max(outside_schedule_, stage.outside_schedule);
    const ActionCosts& first = stage.chunks.front();
    waits_ += first.forward;
    if (!split_backward_) waits_ += first.input_gradient + first.weight_gradient;
  }

  double seconds() const { return kRounding * (in_schedule_ + outside_schedule_); }

 private:
  // The rounding error of a sum depends on the order of its terms.
  static constexpr double kRounding = 1 - 1e-9;

  const int microbatches_;
  const bool split_backward_;
  double waits_ = 0;
  double in_schedule_ = 0;
  double outside_schedule_ = 0;
};

}  // namespace

StatusOr<LayoutEstimate> EstimateLayout(const v1::JobSpec& spec, const v1::DeviceProfile& profile,
                                        double too_slow_seconds) {
  TROUPE_ASSIGN_OR_RETURN(const double peak, PeakFor(spec, profile));
  TROUPE_ASSIGN_OR_RETURN(const BarePlan bare, MakeBarePlan(spec, &profile));
  const auto& [plan, schedule] = bare;
  std::vector<LiveMicrobatches> live;
  bool split_backward = false;
  for (const auto& actions : schedule.actions) {
    live.push_back(CountLiveMicrobatches(actions));
    split_backward |= live.back().split_backward;
  }
  LayoutEstimate estimate;
  StepBound bound(schedule.microbatches, split_backward);
  std::map<std::string, Stage> kinds;
  std::vector<StageTime> times;
  for (int pipe_rank = 0; pipe_rank < plan.mesh().pipe(); ++pipe_rank) {
    const auto& [of_chunk, splits] = live[static_cast<size_t>(pipe_rank)];
    const auto fits = [&](const StageMemory& memory) {
      estimate.memory_bytes = std::max(estimate.memory_bytes, memory.bytes(of_chunk));
      return estimate.memory_bytes <= profile.memory_bytes();
    };
    const std::string kind = KindOfStage(plan, profile, pipe_rank, splits);
    auto found = kinds.find(kind);
    if (found == kinds.end()) {
      TROUPE_ASSIGN_OR_RETURN(const model::Program program, BuildStage(spec, plan, pipe_rank));
      StageMemory memory = MemoryOfStage(spec, plan, program, splits);
      if (!fits(memory)) return estimate;
      const StageRun run = {pipe_rank, schedule.microbatches, splits};
      StageTime time = TimeOfStage(plan, profile, peak, run, program);
      found = kinds.emplace(kind, Stage{std::move(memory), std::move(time)}).first;
    }
    const Stage& stage = found->second;
    if (!fits(stage.memory)) return estimate;
    bound.Add(stage.time);
    estimate.seconds_at_least = bound.seconds();
    if (estimate.seconds_at_least >= too_slow_seconds) return estimate;
    times.push_back(stage.time);
  }
  TROUPE_ASSIGN_OR_RETURN(estimate.time, StepTimeOf(plan, schedule, peak, times));
  return estimate;
}

}  // namespace troupe
