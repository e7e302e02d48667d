#include "plan/make_plan.h"

#include <openssl/sha.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "model/config.h"
#include "plan/estimate.h"
#include "plan/job_defaults.h"
#include "plan/mesh.h"
#include "plan/partition.h"
#include "plan/plan_words.h"
#include "plan/schedules/one_forward_one_backward.h"
#include "plan/schedules/simulator.h"
#include "plan/stage_cost.h"
#include "plan/stage_inputs.h"
#include "plan/validate.h"

namespace troupe {
namespace {

using model::Axis;

Status AddChunks(const v1::JobSpec& spec, const model::ModelConfig& model, v1::Plan* plan) {
  const double samples = static_cast<double>(spec.training().micro_batch_size());
  const double tokens = static_cast<double>(spec.training().sequence_length());
  PartitionCosts costs;
  for (char block : model.blocks) {
    costs.blocks.push_back(BlockForwardFlops(model, block, samples, tokens));
  }
  costs.head = HeadForwardFlops(model, samples, tokens);
  const auto& parallelism = spec.parallelism();
  const auto& split_points = parallelism.pipeline_parallel_split_points();
  const int stages = static_cast<int>(parallelism.pipeline_parallel_degree());
  TROUPE_ASSIGN_OR_RETURN(
      const Partition partition,
      split_points.empty()
          ? PartitionByCost(costs, stages)
          : PartitionAt(costs, std::vector<int64_t>(split_points.begin(), split_points.end())));
  for (int stage = 0; stage < stages; ++stage) {
    const int first = partition.first_block[stage];
    const int end = stage + 1 < stages ? partition.first_block[stage + 1] : model.num_blocks();
    auto* chunk = plan->add_chunks();
    chunk->set_chunk(stage);
    chunk->set_pipe_rank(stage);
    chunk->set_first_block(first);
    chunk->set_block_count(end - first);
    chunk->set_blocks(model.blocks.substr(first, end - first));
    chunk->set_has_embedding(stage == 0);
    chunk->set_has_head(stage == stages - 1);
    int64_t parameters = 0;
    for (char block : chunk->blocks()) parameters += BlockParameters(model, block);
    if (chunk->has_embedding()) parameters += EmbeddingParameters(model);
    if (chunk->has_head()) {
      parameters += HeadParameters(model);
      if (chunk->has_embedding() && model.tie_word_embeddings) {
        parameters -= EmbeddingParameters(model);
      }
    }
    chunk->set_parameters(parameters);
    chunk->set_forward_flops(partition.piece_cost[stage]);
  }
  plan->set_imbalance(partition.imbalance());
  plan->set_parameters(ModelParameters(model));
  plan->set_model_flops_per_step(
      ModelFlops(model, static_cast<double>(spec.training().global_batch_size()), tokens));
  plan->set_attention_flops_per_step(
      AttentionFlops(model, static_cast<double>(spec.training().global_batch_size()), tokens));
  return OkStatus();
}

Status AddSchedule(const v1::JobSpec& spec, v1::Plan* plan) {
  const BatchGeometry batch = MakeBatchGeometry(spec.training(), Mesh(plan->mesh()));
  const Schedule schedule = OneForwardOneBackward(plan->mesh().pipe(), batch.microbatches());
  // At equal costs of all chunks, so that the figure is the schedule's own; what the cut adds is `imbalance`.
  TROUPE_ASSIGN_OR_RETURN(
      const SimulationResult simulated,
      Simulate(schedule, std::vector<ActionCosts>(static_cast<size_t>(plan->chunks_size()))));
  auto* proto = plan->mutable_schedule();
  proto->set_name(schedule.name);
  proto->set_microbatches(schedule.microbatches);
  proto->set_bubble_ratio(simulated.bubble_ratio);
  for (size_t rank = 0; rank < schedule.actions.size(); ++rank) {
    auto* actions = proto->add_ranks();
    for (const Action& action : schedule.actions[rank]) actions->add_actions(ToText(action));
    actions->set_peak_live_activations(simulated.peak_live_activations[rank]);
  }
  return OkStatus();
}

// Memory of each pipe rank, and per axis and purpose the most that any rank sends.
Status SetCosts(const v1::JobSpec& spec, v1::Plan* plan) {
  plan->clear_memory();
  plan->clear_traffic();
  double recomputed_flops = 0;
  const int ranks_per_stage = Mesh(plan->mesh()).ranks() / plan->mesh().pipe();
  std::map<std::pair<std::string, std::string>, double> traffic;
  for (int pipe_rank = 0; pipe_rank < plan->mesh().pipe(); ++pipe_rank) {
    TROUPE_ASSIGN_OR_RETURN(const StageCost cost, CostOfStage(spec, *plan, pipe_rank));
    *plan->add_memory() = cost.memory;
    recomputed_flops += ranks_per_stage * cost.recomputed_flops;
    for (const auto& entry : cost.traffic) {
      double& bytes = traffic[{entry.axis(), entry.purpose()}];
      bytes = std::max(bytes, entry.bytes_per_step());
    }
  }
  plan->set_recomputed_flops_per_step(recomputed_flops);
  for (const auto& [key, bytes] : traffic) {
    auto* entry = plan->add_traffic();
    entry->set_axis(key.first);
    entry->set_purpose(key.second);
    entry->set_bytes_per_step(bytes);
  }
  return OkStatus();
}

// Megatron's constants (facts: formulas, "Distributed optimizer").
v1::BucketPolicy DefaultBucketPolicy(int data_ranks) {
  v1::BucketPolicy policy;
  policy.set_elements(std::max<int64_t>(40'000'000, int64_t{1'000'000} * data_ranks));
  policy.set_alignment(64);
  policy.set_padding(std::lcm<int64_t>(data_ranks, 128));
  return policy;
}

std::string DigestOf(const v1::Plan& plan) {
  v1::Plan part;
  *part.mutable_mesh() = plan.mesh();
  *part.mutable_chunks() = plan.chunks();
  *part.mutable_schedule() = plan.schedule();
  *part.mutable_bucket() = plan.bucket();
  *part.mutable_device() = plan.device();
  part.set_threads_per_rank(plan.threads_per_rank());
  part.set_control_lag_steps(plan.control_lag_steps());
  const std::string bytes = part.SerializeAsString();
  unsigned char hash[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), hash);
  std::string text = "sha256:";
  for (unsigned char byte : hash) text += fmt::format("{:02x}", byte);
  return text;
}

// What the ranks of `placed` need on each host where that is more than the devices of `cluster`
// there have.
std::vector<std::string> MemoryWarnings(const v1::Plan& placed, const ClusterView& cluster) {
  constexpr double kGibibyte = 1 << 30;
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
        "host {}: its {} ranks need {:.1f} GiB of memory, its free devices have {:.1f} GiB", host,
        need.second, static_cast<double>(need.first) / kGibibyte,
        static_cast<double>(memory) / kGibibyte));
  }
  return warnings;
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

// A plan is placed again after each failure: what was said before is not said twice.
void AddMissing(std::vector<std::string> warnings, v1::Plan* plan) {
  for (std::string& warning : warnings) {
    const auto& said = plan->warnings();
    if (std::find(said.begin(), said.end(), warning) == said.end())
      plan->add_warnings(std::move(warning));
  }
}

}  // namespace

StatusOr<v1::JobSpec> CompleteJobSpec(const v1::JobSpec& spec) {
  v1::JobSpec complete = spec;
  ApplyDefaults(&complete);
  TROUPE_RETURN_IF_ERROR(ValidateJobSpec(complete, JobPurpose::kTrain));
  return complete;
}

StatusOr<v1::Plan> MakeUnplacedPlan(const v1::JobSpec& spec) {
  TROUPE_RETURN_IF_ERROR(ValidateJobSpec(spec, JobPurpose::kPlan));
  TROUPE_ASSIGN_OR_RETURN(const model::ModelConfig model, MakeModelConfig(spec.model()));
  const Mesh mesh(spec.parallelism());
  v1::Plan plan;
  *plan.mutable_mesh() = mesh.ToProto();
  for (int rank = 0; rank < mesh.ranks(); ++rank) {
    auto* placement = plan.add_ranks();
    placement->set_rank(rank);
    *placement->mutable_coordinates() = Mesh::ToProto(mesh.CoordinatesOf(rank));
  }
  TROUPE_RETURN_IF_ERROR(AddChunks(spec, model, &plan));
  TROUPE_RETURN_IF_ERROR(AddSchedule(spec, &plan));
  *plan.mutable_bucket() = DefaultBucketPolicy(mesh.data_ranks());
  TROUPE_RETURN_IF_ERROR(SetCosts(spec, &plan));
  AddData(spec.data(), &plan);
  for (auto& line : CannotFixLines()) plan.add_cannot_fix(std::move(line));
  for (auto& line : OwnershipLines(model, plan)) plan.add_ownership(std::move(line));
  for (auto& line : WarningLines(spec, plan)) plan.add_warnings(std::move(line));
  plan.set_digest(DigestOf(plan));
  return plan;
}

StatusOr<v1::Plan> PlacePlan(const v1::JobSpec& spec, const v1::Plan& plan,
                             const ClusterView& cluster) {
  const bool frozen = plan.has_device();
  TROUPE_ASSIGN_OR_RETURN(GangPlacement gang,
                          PlaceGang(plan.mesh(), spec.devices(), cluster,
                                    frozen ? &plan.device() : nullptr));
  v1::Plan placed = plan;
  placed.clear_ranks();
  for (auto& rank : gang.ranks) *placed.add_ranks() = std::move(rank);
  if (!frozen) {
    *placed.mutable_device() = gang.device;
    placed.set_threads_per_rank(gang.threads_per_rank);
  }
  // A plan that was made anew and given the frozen device has the digest of one without until here.
  if (std::string digest = DigestOf(placed); !frozen || digest != plan.digest()) {
    placed.set_digest(std::move(digest));
    // Scratch memory grows with the threads of a rank, which are known by now.
    TROUPE_RETURN_IF_ERROR(SetCosts(spec, &placed));
  }
  AddMissing(MemoryWarnings(placed, cluster), &placed);
  AddMissing(std::move(gang.warnings), &placed);
  return placed;
}

StatusOr<v1::Plan> MakePlan(const v1::JobSpec& spec, const ClusterView& cluster) {
  TROUPE_ASSIGN_OR_RETURN(const v1::Plan plan, MakeUnplacedPlan(spec));
  return PlacePlan(spec, plan, cluster);
}

std::optional<v1::JobSpec> SmallerLayout(const v1::JobSpec& spec, int devices) {
  const int64_t degree = spec.parallelism().data_parallel_replicate_degree();
  const int64_t ranks_per_replica = RankCount(spec.parallelism()) / degree;
  for (int64_t smaller = std::min(degree - 1, devices / ranks_per_replica); smaller >= 1;
       --smaller) {
    v1::JobSpec candidate = spec;
    candidate.mutable_parallelism()->set_data_parallel_replicate_degree(smaller);
    if (ValidateJobSpec(candidate, JobPurpose::kPlan).ok()) return candidate;
  }
  return std::nullopt;
}

}  // namespace troupe
