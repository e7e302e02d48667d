#include "plan/placed_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text/count_text.h"
#include "base/text/scaled.h"
#include "plan/cost/stage_memo.h"
#include "plan/cost/tensor_parts.h"
#include "plan/device/compiler_options.h"
#include "plan/layout/islands.h"
#include "plan/layout/placement.h"
#include "plan/plan_costs.h"
#include "plan/plan_digest.h"
#include "plan/text/plan_words.h"
#include "plan/unplaced_plan.h"
#include "plan/validate/stage_slices.h"
#include "plan/validate/validate.h"

namespace troupe {
namespace {

// Whether the planner makes a choice that depends on the estimated step time.
bool ChoosesByProfile(const DecodedJob& job) {
  return (job.chooses_schedule && job.mesh.degree(model::Axis::kPipe) > 1) ||
         ChoosesTensorParts(job);
}

// The profile of the first rank's device, which has the same kind as all others; null if it
// announced none.
const v1::DeviceProfile* ProfileOf(const GangPlacement& gang, const ClusterView& cluster) {
  const v1::RankPlacement& first = gang.ranks.front();
  for (const ClusterDevice& device : cluster.free_devices) {
    if (device.worker != first.worker() || device.device.index() != first.device()) continue;
    return device.device.has_profile() ? &device.device.profile() : nullptr;
  }
  return nullptr;
}

// Warns of the stages of `placed` that need more memory than a device of their ranks has.
std::vector<std::string> DeviceMemoryWarnings(const v1::Plan& placed, const ClusterView& cluster) {
  std::map<std::pair<std::string, int>, int64_t> of_device;
  for (const ClusterDevice& device : cluster.free_devices) {
    of_device[{device.worker, device.device.index()}] = device.device.memory_bytes();
  }
  // Number of ranks that lack memory, and the smallest memory among them.
  std::map<int, std::pair<int, int64_t>> stages;
  for (const v1::RankPlacement& rank : placed.ranks()) {
    const int pipe = rank.coordinates().pipe();
    const int64_t memory = of_device[{rank.worker(), rank.device()}];
    if (pipe >= placed.memory_size() || memory == 0 || placed.memory(pipe).total_bytes() <= memory)
      continue;
    auto& [ranks, least] = stages[pipe];
    least = ranks++ == 0 ? memory : std::min(least, memory);
  }
  std::vector<std::string> warnings;
  for (const auto& [pipe, lacking] : stages) {
    warnings.push_back(
        fmt::format("stage {}: a rank needs {} of its device, but {} of the stage's devices {} "
                    "less, the smallest only {}",
                    pipe, Gigabytes(placed.memory(pipe).total_bytes()), lacking.first,
                    lacking.first == 1 ? "has" : "have", Gigabytes(lacking.second)));
  }
  return warnings;
}

// Warns of each host on which the ranks of `placed` need more memory than the devices of `cluster`
// on it have. Devices with memory of their own are checked one by one.
std::vector<std::string> MemoryWarnings(const DecodedJob& job, const v1::Plan& placed,
                                        const ClusterView& cluster) {
  if (job.DevicesOf(placed).memory != nullptr) return DeviceMemoryWarnings(placed, cluster);
  std::map<std::string, int64_t> there;
  for (const ClusterDevice& device : cluster.free_devices) {
    there[device.host.empty() ? device.worker : device.host] += device.device.memory_bytes();
  }
  std::map<std::string, std::pair<int64_t, int>> needed;
  for (const v1::RankPlacement& rank : placed.ranks()) {
    const int pipe = rank.coordinates().pipe();
    if (rank.host().empty() || pipe >= placed.memory_size()) continue;
    auto& [bytes, ranks] = needed[rank.host()];
    bytes += placed.memory(pipe).total_bytes();
    ++ranks;
  }
  std::vector<std::string> warnings;
  for (const auto& [host, need] : needed) {
    const int64_t memory = there[host];
    if (memory == 0 || need.first <= memory) continue;
    warnings.push_back(fmt::format(
        "host {}: its part of the job, {}, needs {} of memory, but its free devices have {}", host,
        CountText(need.second, "rank"), Gigabytes(need.first), Gigabytes(memory)));
  }
  return warnings;
}

// Whether the figures of SetCosts already are those of the placed plan.
bool HasCosts(const v1::Plan& plan) {
  return plan.memory_size() > 0 &&
         plan.memory(0).threads() == std::max(1, plan.threads_per_rank()) && plan.has_samples();
}

// The devices of `cluster` that have all groups of compiler options that the job names. If none of
// the job's kind has them, the error of the last one.
StatusOr<ClusterView> WithGroups(const v1::JobSpec& spec, const ClusterView& cluster) {
  ClusterView suitable;
  Status lacking;
  for (const ClusterDevice& device : cluster.free_devices) {
    const v1::DeviceKind& kind = device.device.kind();
    if (kind.kind() != spec.devices()) continue;
    const Status resolved = ResolveCompilerOptions(spec.xla(), kind).status();
    if (resolved.ok()) suitable.free_devices.push_back(device);
    if (!resolved.ok()) lacking = resolved;
  }
  if (suitable.free_devices.empty() && !lacking.ok()) return lacking;
  return suitable;
}

}  // namespace

StatusOr<v1::Plan> PlacedPlanOf(const DecodedJob& job, const v1::Plan& plan,
                                const ClusterView& cluster) {
  const v1::JobSpec& spec = job.spec;
  const bool frozen = plan.has_device();
  std::optional<ClusterView> with_groups;
  if (!spec.xla().option_groups().empty()) {
    TROUPE_ASSIGN_OR_RETURN(with_groups, WithGroups(spec, cluster));
  }
  TROUPE_ASSIGN_OR_RETURN(
      GangPlacement gang,
      PlaceGang(plan.mesh(), spec.devices(), with_groups ? *with_groups : cluster,
                frozen ? &plan.device() : nullptr, job.shard_run));
  if (gang.ranks.front().has_slice_process()) TROUPE_RETURN_IF_ERROR(CheckStageSlices(job));
  v1::Plan placed = plan;
  const v1::DeviceProfile* const profile = ProfileOf(gang, cluster);
  if (!frozen && ChoosesByProfile(job) && profile != nullptr &&
      PeakFor(spec.training(), *profile).ok()) {
    TROUPE_RETURN_IF_ERROR(ValidateJobSpec(spec, JobPurpose::kPlan));
    TROUPE_ASSIGN_OR_RETURN(placed, UnplacedPlanOf(job, profile));
    if (plan.has_bucket_stated_for())
      *placed.mutable_bucket_stated_for() = plan.bucket_stated_for();
  }
  placed.clear_ranks();
  for (auto& rank : gang.ranks) *placed.add_ranks() = std::move(rank);
  if (!frozen) {
    *placed.mutable_device() = gang.device;
    placed.set_threads_per_rank(gang.threads_per_rank);
  }
  // Scratch memory grows with the threads of a rank, traffic is split by islands, and TPUs have
  // memory of their own; all of it is known only now. A plan that was made again and got the frozen
  // device has assumed one thread until here.
  if (!HasCosts(placed) || Islands(placed) != Islands(plan) ||
      &job.DevicesOf(placed) != &job.DevicesOf(plan)) {
    TROUPE_RETURN_IF_ERROR(SetCosts(job, &placed));
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> options,
                          ResolveCompilerOptions(spec.xla(), placed.device()));
  placed.mutable_compiler_options()->Assign(options.begin(), options.end());
  placed.set_digest(PlanDigest(spec, placed));
  // A plan is placed again after each failure; warnings of an earlier placement are dropped.
  placed.clear_warnings();
  for (auto& line : WarningLines(job, placed)) placed.add_warnings(std::move(line));
  for (auto& line : MemoryWarnings(job, placed, cluster)) placed.add_warnings(std::move(line));
  for (auto& line : gang.warnings) placed.add_warnings(std::move(line));
  return placed;
}

}  // namespace troupe
