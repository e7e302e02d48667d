#include "plan/plan_costs.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan/cost/stage_cost.h"
#include "plan/validate/read_channels.h"

namespace troupe {
namespace {

// Keeps the larger of each figure in `entry`.
void Max(const v1::AxisReplication& other, v1::AxisReplication* entry) {
  if (other.state_bytes() > entry->state_bytes()) {
    entry->set_state_bytes(other.state_bytes());
    entry->set_all_state_bytes(other.all_state_bytes());
  }
  if (other.saved_bytes() > entry->saved_bytes()) {
    entry->set_saved_bytes(other.saved_bytes());
    entry->set_all_saved_bytes(other.all_saved_bytes());
  }
}

void AddReplication(const std::vector<v1::AxisReplication>& of_stage, v1::Plan* plan) {
  for (size_t i = 0; i < of_stage.size(); ++i) {
    if (plan->replication_size() == static_cast<int>(i)) *plan->add_replication() = of_stage[i];
    Max(of_stage[i], plan->mutable_replication(static_cast<int>(i)));
  }
}

void AddTraffic(const v1::AxisTraffic& of_stage,
                std::map<std::pair<std::string, std::string>, v1::AxisTraffic>* traffic) {
  const auto [found, added] =
      traffic->emplace(std::pair(of_stage.axis(), of_stage.purpose()), of_stage);
  v1::AxisTraffic& most = found->second;
  most.set_bytes_per_step(std::max(most.bytes_per_step(), of_stage.bytes_per_step()));
  if (!of_stage.has_across_islands_bytes_per_step()) return;
  most.set_across_islands_bytes_per_step(
      std::max(most.across_islands_bytes_per_step(), of_stage.across_islands_bytes_per_step()));
}

}  // namespace

Status SetCosts(const DecodedJob& job, v1::Plan* plan) {
  plan->clear_memory();
  plan->clear_traffic();
  plan->clear_replication();
  double recomputed_flops = 0;
  ReadChannels channels(CurrentSampleSchema());
  const int ranks_per_stage = job.mesh.ranks() / plan->mesh().pipe();
  std::map<std::pair<std::string, std::string>, v1::AxisTraffic> traffic;
  for (int pipe_rank = 0; pipe_rank < plan->mesh().pipe(); ++pipe_rank) {
    TROUPE_ASSIGN_OR_RETURN(const model::Program program, BuildStage(job, *plan, pipe_rank));
    TROUPE_RETURN_IF_ERROR(channels.Add(program));
    TROUPE_ASSIGN_OR_RETURN(const StageCost cost, CostOfStage(job, *plan, pipe_rank, program));
    *plan->add_memory() = cost.memory;
    recomputed_flops += ranks_per_stage * cost.recomputed_flops;
    for (const auto& entry : cost.traffic) AddTraffic(entry, &traffic);
    AddReplication(cost.replication, plan);
  }
  plan->set_recomputed_flops_per_step(recomputed_flops);
  TROUPE_ASSIGN_OR_RETURN(*plan->mutable_samples(), channels.ToProto());
  for (auto& [key, entry] : traffic) *plan->add_traffic() = std::move(entry);
  return OkStatus();
}

}  // namespace troupe
