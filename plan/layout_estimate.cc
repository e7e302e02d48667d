#include "plan/layout_estimate.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/make_plan.h"
#include "plan/mesh.h"
#include "plan/stage_cost.h"
#include "plan/stage_inputs.h"

namespace troupe {
namespace {

// What a stage's program, memory and time depend on: what its chunks hold, which neighbours share its rank, how many
// microbatches it keeps alive, and where in an island it begins.
StatusOr<std::string> KindOfStage(const v1::Plan& plan, const v1::DeviceProfile& profile,
                                  int pipe_rank) {
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
  TROUPE_ASSIGN_OR_RETURN(const LiveMicrobatches live, CountLiveMicrobatches(plan, pipe_rank));
  for (const int count : live.of_chunk) kind += fmt::format("{} ", count);
  const int first = Mesh(plan.mesh()).RankOf({{pipe_rank, 0, 0, 0, 0, 0}});
  return fmt::format("{}{} {}", kind, live.split_backward, first % profile.devices_per_island());
}

}  // namespace

StatusOr<LayoutEstimate> EstimateLayout(const v1::JobSpec& spec, const v1::DeviceProfile& profile) {
  TROUPE_ASSIGN_OR_RETURN(const double peak, PeakFor(spec, profile));
  TROUPE_ASSIGN_OR_RETURN(const v1::Plan plan, MakeBarePlan(spec));
  LayoutEstimate estimate;
  std::map<std::string, StageTime> times;
  std::vector<StageTime> stages;
  for (int pipe_rank = 0; pipe_rank < plan.mesh().pipe(); ++pipe_rank) {
    TROUPE_ASSIGN_OR_RETURN(const std::string kind, KindOfStage(plan, profile, pipe_rank));
    auto found = times.find(kind);
    if (found == times.end()) {
      TROUPE_ASSIGN_OR_RETURN(const model::Program program, BuildStage(spec, plan, pipe_rank));
      TROUPE_ASSIGN_OR_RETURN(const StageCost cost, CostOfStage(spec, plan, pipe_rank, program));
      estimate.memory_bytes = std::max(estimate.memory_bytes, cost.memory.total_bytes());
      if (estimate.memory_bytes > profile.memory_bytes()) return estimate;
      found = times.emplace(kind, TimeOfStage(plan, profile, peak, pipe_rank, program)).first;
    }
    stages.push_back(found->second);
  }
  TROUPE_ASSIGN_OR_RETURN(estimate.time, StepTimeOf(plan, peak, stages));
  return estimate;
}

}  // namespace troupe
