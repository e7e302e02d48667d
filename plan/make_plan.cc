#include "plan/make_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/text/count_text.h"
#include "base/text/scaled.h"
#include "model/blocks/config.h"
#include "plan/cost/choose_schedule.h"
#include "plan/cost/cut_model.h"
#include "plan/cost/estimate.h"
#include "plan/cost/overlapped_pairs.h"
#include "plan/cost/schedule_costs.h"
#include "plan/cost/stage_cost.h"
#include "plan/cost/step_time.h"
#include "plan/cost/tensor_parts.h"
#include "plan/device/compiler_options.h"
#include "plan/device/device_traits.h"
#include "plan/device/tpu_model.h"
#include "plan/job/job_defaults.h"
#include "plan/job/violation.h"
#include "plan/layout/islands.h"
#include "plan/layout/mesh.h"
#include "plan/plan_digest.h"
#include "plan/schedules/schedules.h"
#include "plan/schedules/simulator.h"
#include "plan/text/cannot_fix.h"
#include "plan/text/plan_words.h"
#include "plan/validate/read_channels.h"
#include "plan/validate/reshard.h"
#include "plan/validate/stage_inputs.h"
#include "plan/validate/stage_slices.h"
#include "plan/validate/validate.h"

namespace troupe {
namespace {

// The job's own schedule, or the one that `auto` chooses; the plan then gets the reasons.
StatusOr<Schedule> ScheduleOf(const v1::JobSpec& spec, const model::ModelConfig& model,
                              StageMemo* stages, const std::vector<ScheduleOption>& schedules,
                              v1::Plan* plan) {
  const auto& parallelism = spec.parallelism();
  const int pipe = plan->mesh().pipe();
  const int microbatches = MakeBatchGeometry(spec.training(), Mesh(plan->mesh())).microbatches();
  std::optional<int> chunks;
  if (parallelism.has_pipeline_parallel_chunks()) {
    chunks = static_cast<int>(parallelism.pipeline_parallel_chunks());
  }
  if (parallelism.pipeline_parallel_schedule() == kAutoSchedule) {
    TROUPE_ASSIGN_OR_RETURN(ScheduleChoice choice,
                            ChooseSchedule(
                                pipe, chunks, microbatches,
                                [&](const Schedule& schedule) {
                                  return stages != nullptr ? SecondsOfSchedule(spec, model, *plan,
                                                                               schedule, *stages)
                                                           : FlopsOfSchedule(spec, model, schedule);
                                },
                                schedules));
    for (std::string& line : choice.reasons) plan->add_schedule_choice(std::move(line));
    plan->add_schedule_choice(
        CostsLine(choice.costs, stages != nullptr ? &stages->profile() : nullptr));
    return MakeSchedule(choice.kind, choice.shape);
  }
  const auto named = FindSchedule(parallelism.pipeline_parallel_schedule());
  if (!named) {
    Violations violations;
    violations.AddUnknownWord("parallelism.pipeline_parallel_schedule",
                              parallelism.pipeline_parallel_schedule(), KnownSchedules());
    return violations.ToStatus();
  }
  const PipelineShape shape{pipe, chunks.value_or(named->default_chunks_per_stage), microbatches};
  TROUPE_RETURN_IF_ERROR(CheckShape(named->kind, shape));
  return MakeSchedule(named->kind, shape);
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

// Sets the memory of each pipe rank, the sample channels that the ranks read, the state that each
// axis replicates, and for each axis and purpose the largest traffic of any rank.
Status SetCosts(const v1::JobSpec& spec, v1::Plan* plan) {
  plan->clear_memory();
  plan->clear_traffic();
  plan->clear_replication();
  double recomputed_flops = 0;
  ReadChannels channels(CurrentSampleSchema());
  const int ranks_per_stage = Mesh(plan->mesh()).ranks() / plan->mesh().pipe();
  std::map<std::pair<std::string, std::string>, v1::AxisTraffic> traffic;
  for (int pipe_rank = 0; pipe_rank < plan->mesh().pipe(); ++pipe_rank) {
    TROUPE_ASSIGN_OR_RETURN(const model::Program program, BuildStage(spec, *plan, pipe_rank));
    TROUPE_RETURN_IF_ERROR(channels.Add(program));
    TROUPE_ASSIGN_OR_RETURN(const StageCost cost, CostOfStage(spec, *plan, pipe_rank, program));
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

// The constants are those of Megatron's distributed optimizer.
v1::BucketPolicy MakeBucketPolicy(const v1::BucketSpec& spec, int data_ranks) {
  v1::BucketPolicy policy;
  policy.set_elements(std::max<int64_t>(40'000'000, int64_t{1'000'000} * data_ranks));
  if (spec.has_elements()) policy.set_elements(spec.elements());
  policy.set_alignment(spec.has_alignment() ? spec.alignment() : 64);
  policy.set_padding(spec.has_padding() ? spec.padding()
                                        : std::lcm<int64_t>(data_ranks, std::lcm(policy.alignment(),
                                                                                 int64_t{128})));
  return policy;
}

// Whether the planner makes a choice that depends on the estimated step time.
bool ChoosesByProfile(const v1::JobSpec& spec) {
  return (spec.parallelism().pipeline_parallel_schedule() == kAutoSchedule &&
          spec.parallelism().pipeline_parallel_degree() > 1) ||
         ChoosesTensorParts(spec);
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
std::vector<std::string> MemoryWarnings(const v1::JobSpec& spec, const v1::Plan& placed,
                                        const ClusterView& cluster) {
  if (DeviceTraitsOf(spec, placed).memory != nullptr) return DeviceMemoryWarnings(placed, cluster);
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

StatusOr<v1::JobSpec> CompleteJobSpec(const v1::JobSpec& spec) {
  v1::JobSpec complete = spec;
  ApplyDefaults(&complete);
  TROUPE_RETURN_IF_ERROR(ValidateJobSpec(complete, JobPurpose::kTrain));
  return complete;
}

StatusOr<BarePlan> MakeBarePlan(const v1::JobSpec& spec, StageMemo* stages,
                                const std::vector<ScheduleOption>& schedules) {
  TROUPE_ASSIGN_OR_RETURN(const model::ModelConfig model, MakeModelConfig(spec.model()));
  const Mesh mesh(spec.parallelism());
  BarePlan bare;
  *bare.plan.mutable_mesh() = mesh.ToProto();
  if (stages != nullptr) *bare.plan.mutable_device_profile() = stages->profile();
  bare.plan.set_control_lag_steps(DeviceTraitsOf(spec.devices()).control_lag_steps);
  *bare.plan.mutable_bucket() = MakeBucketPolicy(spec.parallelism().bucket(), mesh.data_ranks());
  bare.plan.set_tensor_parallel_parts(
      static_cast<int32_t>(std::max<int64_t>(1, spec.parallelism().tensor_parallel_parts())));
  TROUPE_ASSIGN_OR_RETURN(bare.schedule, ScheduleOf(spec, model, stages, schedules, &bare.plan));
  bare.plan.mutable_schedule()->set_interleaves_pairs(
      InterleavesPairs(bare.schedule, bare.plan.mesh()));
  TROUPE_RETURN_IF_ERROR(AddChunks(spec, model, bare.schedule, &bare.plan));
  return bare;
}

StatusOr<v1::Plan> MakeUnplacedPlan(const v1::JobSpec& spec, const v1::DeviceProfile* profile) {
  if (profile != nullptr && profile->ByteSizeLong() == 0) profile = nullptr;
  TROUPE_RETURN_IF_ERROR(ValidateJobSpec(spec, JobPurpose::kPlan));
  if (profile != nullptr) TROUPE_RETURN_IF_ERROR(CheckProfileIsOfJobsDevices(spec, *profile));
  if (profile != nullptr && FindTpuModel(profile->device_model()) != nullptr)
    TROUPE_RETURN_IF_ERROR(CheckStageSlices(spec));
  TROUPE_ASSIGN_OR_RETURN(const model::ModelConfig model, MakeModelConfig(spec.model()));
  std::optional<StageMemo> stages;
  if (profile != nullptr) stages.emplace(spec, *profile);
  TROUPE_ASSIGN_OR_RETURN(BarePlan bare,
                          MakeBarePlan(spec, stages ? &*stages : nullptr, EverySchedule()));
  v1::Plan& plan = bare.plan;
  TROUPE_RETURN_IF_ERROR(AddSchedule(bare.schedule, &plan));
  if (stages) TROUPE_RETURN_IF_ERROR(ChooseTensorParts(spec, *stages, &plan));
  const Mesh mesh(spec.parallelism());
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    auto* placement = plan.add_ranks();
    placement->set_rank(rank);
    *placement->mutable_coordinates() = Mesh::ToProto(mesh.CoordinatesOf(rank));
  }
  TROUPE_RETURN_IF_ERROR(SetCosts(spec, &plan));
  AddData(spec.data(), &plan);
  for (auto& line : CannotFixLines(spec, model, plan)) plan.add_cannot_fix(std::move(line));
  for (auto& line : OwnershipLines(model, plan, SpreadsExpertsOverTensor(spec.parallelism())))
    plan.add_ownership(std::move(line));
  for (auto& line : ShardingLines(spec.parallelism())) plan.add_ownership(std::move(line));
  for (auto& line : WarningLines(spec, plan)) plan.add_warnings(std::move(line));
  plan.set_digest(PlanDigest(spec, plan));
  return std::move(bare.plan);
}

StatusOr<v1::Plan> PlacePlan(const v1::JobSpec& spec, const v1::Plan& plan,
                             const ClusterView& cluster) {
  const bool frozen = plan.has_device();
  std::optional<ClusterView> with_groups;
  if (!spec.xla().option_groups().empty()) {
    TROUPE_ASSIGN_OR_RETURN(with_groups, WithGroups(spec, cluster));
  }
  TROUPE_ASSIGN_OR_RETURN(
      GangPlacement gang,
      PlaceGang(plan.mesh(), spec.devices(), with_groups ? *with_groups : cluster,
                frozen ? &plan.device() : nullptr, ShardRun(spec.parallelism())));
  if (gang.ranks.front().has_slice_process()) TROUPE_RETURN_IF_ERROR(CheckStageSlices(spec));
  v1::Plan placed = plan;
  const v1::DeviceProfile* const profile = ProfileOf(gang, cluster);
  if (!frozen && ChoosesByProfile(spec) && profile != nullptr && PeakFor(spec, *profile).ok()) {
    TROUPE_ASSIGN_OR_RETURN(placed, MakeUnplacedPlan(spec, profile));
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
      &DeviceTraitsOf(spec, placed) != &DeviceTraitsOf(spec, plan)) {
    TROUPE_RETURN_IF_ERROR(SetCosts(spec, &placed));
  }
  TROUPE_ASSIGN_OR_RETURN(const std::vector<std::string> options,
                          ResolveCompilerOptions(spec.xla(), placed.device()));
  placed.mutable_compiler_options()->Assign(options.begin(), options.end());
  placed.set_digest(PlanDigest(spec, placed));
  // A plan is placed again after each failure; warnings of an earlier placement are dropped.
  placed.clear_warnings();
  for (auto& line : WarningLines(spec, placed)) placed.add_warnings(std::move(line));
  for (auto& line : MemoryWarnings(spec, placed, cluster)) placed.add_warnings(std::move(line));
  for (auto& line : gang.warnings) placed.add_warnings(std::move(line));
  return placed;
}

StatusOr<v1::Plan> MakePlan(const v1::JobSpec& spec, const ClusterView& cluster) {
  TROUPE_ASSIGN_OR_RETURN(const v1::Plan plan, MakeUnplacedPlan(spec));
  return PlacePlan(spec, plan, cluster);
}

std::optional<v1::JobSpec> SmallerLayout(const v1::JobSpec& spec, int devices) {
  const int64_t replicas = spec.parallelism().data_parallel_replicate_degree();
  const int64_t ranks_per_replica = RankCount(spec.parallelism()) / replicas;
  v1::JobSpec candidate = spec;
  auto* const parallelism = candidate.mutable_parallelism();
  for (int64_t fewer = std::min(replicas - 1, devices / ranks_per_replica); fewer >= 1; --fewer) {
    parallelism->set_data_parallel_replicate_degree(fewer);
    if (ValidateJobSpec(candidate, JobPurpose::kPlan).ok()) return candidate;
  }
  // Not even one replica fits: its parameters are distributed over fewer ranks, each of which holds
  // more.
  parallelism->set_data_parallel_replicate_degree(1);
  const int64_t shards = parallelism->data_parallel_shard_degree();
  const int64_t ranks_per_shard = ranks_per_replica / shards;
  for (int64_t fewer = std::min(shards - 1, devices / ranks_per_shard); fewer >= 1; --fewer) {
    parallelism->set_data_parallel_shard_degree(fewer);
    KeepReshard(spec.parallelism(), parallelism);
    if (fewer == 1 && parallelism->expert_parallel_degree() == 1) {
      parallelism->clear_zero_stage();
      parallelism->clear_reshard_after_forward();
      parallelism->set_shard_whole_matrices(false);
    }
    if (ValidateJobSpec(candidate, JobPurpose::kPlan).ok()) return candidate;
  }
  return std::nullopt;
}

}  // namespace troupe
