#include "plan/unplaced_plan.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/bare_plan.h"
#include "plan/cost/tensor_parts.h"
#include "plan/device/tpu_model.h"
#include "plan/plan_costs.h"
#include "plan/plan_digest.h"
#include "plan/schedules/simulator.h"
#include "plan/text/cannot_fix.h"
#include "plan/text/plan_words.h"
#include "plan/validate/stage_slices.h"

namespace troupe {
namespace {

// INVALID_ARGUMENT if the devices of `profile` cannot run the job.
Status CheckProfile(const DecodedJob& job, const v1::DeviceProfile& profile) {
  TROUPE_RETURN_IF_ERROR(CheckProfileIsOfJobsDevices(job.spec, profile));
  return FindTpuModel(profile.device_model()) == nullptr ? OkStatus() : CheckStageSlices(job);
}

Status AddSchedule(const Schedule& schedule, v1::Plan* plan) {
  // Simulates with equal costs for all chunks, so that the figure is a property of the schedule;
  // `imbalance` measures the effect of the cut.
  TROUPE_ASSIGN_OR_RETURN(
      const SimulationResult simulated,
      Simulate(schedule, std::vector<ActionCosts>(static_cast<size_t>(plan->chunks_size())),
               {.indivisible_pairs = plan->schedule().interleaves_pairs()}));
  auto* proto = plan->mutable_schedule();
  proto->set_name(schedule.name);
  proto->set_microbatches(schedule.microbatches);
  proto->set_bubble_ratio(simulated.bubble_ratio);
  for (size_t rank = 0; rank < schedule.actions.size(); ++rank) {
    auto* actions = proto->add_ranks();
    for (std::string& text : ToTexts(schedule.actions[rank])) actions->add_actions(std::move(text));
    actions->set_peak_live_activations(simulated.peak_live_activations[rank]);
  }
  return OkStatus();
}

void AddData(const v1::DataSpec& data, v1::Plan* plan) {
  double sum = 0;
  for (const auto& entry : data.blend()) sum += entry.weight();
  for (const auto& entry : data.blend()) {
    auto* share = plan->add_data();
    share->set_path(entry.path());
    share->set_weight(entry.weight());
    share->set_share(entry.weight() / sum);
  }
  if (data.train().empty()) return;
  auto* share = plan->add_data();
  share->set_path(data.train());
  share->set_weight(1);
  share->set_share(1);
}

}  // namespace

StatusOr<v1::Plan> UnplacedPlanOf(const DecodedJob& job, const v1::DeviceProfile* profile) {
  if (profile != nullptr && profile->ByteSizeLong() == 0) profile = nullptr;
  if (profile != nullptr) TROUPE_RETURN_IF_ERROR(CheckProfile(job, *profile));
  std::optional<StageMemo> stages;
  if (profile != nullptr) stages.emplace(job, *profile);
  TROUPE_ASSIGN_OR_RETURN(BarePlan bare,
                          MakeBarePlan(job, stages ? &*stages : nullptr, EverySchedule()));
  v1::Plan& plan = bare.plan;
  TROUPE_RETURN_IF_ERROR(AddSchedule(bare.schedule, &plan));
  if (stages) TROUPE_RETURN_IF_ERROR(ChooseTensorParts(*stages, &plan));
  for (int rank = 0; rank < job.mesh.ranks(); ++rank) {
    auto* placement = plan.add_ranks();
    placement->set_rank(rank);
    *placement->mutable_coordinates() = Mesh::ToProto(job.mesh.CoordinatesOf(rank));
  }
  TROUPE_RETURN_IF_ERROR(SetCosts(job, &plan));
  AddData(job.spec.data(), &plan);
  for (auto& line : CannotFixLines(job, plan)) plan.add_cannot_fix(std::move(line));
  for (auto& line : OwnershipLines(job, plan)) plan.add_ownership(std::move(line));
  for (auto& line : ShardingLines(job)) plan.add_ownership(std::move(line));
  for (auto& line : WarningLines(job, plan)) plan.add_warnings(std::move(line));
  plan.set_digest(PlanDigest(job.spec, plan));
  return std::move(bare.plan);
}

}  // namespace troupe
