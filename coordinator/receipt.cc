#include "coordinator/receipt.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "plan/mesh.h"

namespace troupe {
namespace {

// Below so many steps a mean says little.
constexpr int64_t kFewSteps = 10;
// Of the step: shares that something else must have taken.
constexpr double kMuchCoreWait = 0.02;
constexpr double kUnevenSteps = 1.5;

constexpr char kMfuConvention[] =
    "troupe-1: products of forward and backward (6 FLOPs a weight and token), causal attention "
    "halved, real tokens and seen pairs, active parameters, padded vocabulary and recomputation "
    "left out; over the devices' peak for the compute dtype";

template <typename Entries>
auto& EntryOf(const std::string& purpose, Entries* entries) {
  for (auto& entry : *entries) {
    if (entry.purpose() == purpose) return entry;
  }
  auto* const added = entries->Add();
  added->set_purpose(purpose);
  return *added;
}

void Count(const std::string& operation, int64_t count,
           google::protobuf::RepeatedPtrField<v1::OperationCount>* counts) {
  for (v1::OperationCount& known : *counts) {
    if (known.operation() != operation) continue;
    known.set_count(known.count() + count);
    return;
  }
  v1::OperationCount* const added = counts->Add();
  added->set_operation(operation);
  added->set_count(count);
}

// Figures of steps begin anew; what was prepared stays counted.
void BeginPlan(const std::string& digest, v1::ReceiptTally* tally) {
  v1::ReceiptTally fresh;
  fresh.set_plan_digest(digest);
  fresh.set_steps_of_other_plans(tally->steps_of_other_plans() + tally->warm_up_steps() +
                                 tally->steps_apart() + tally->steady_steps());
  fresh.set_programs(tally->programs());
  fresh.set_build_seconds(tally->build_seconds());
  fresh.set_load_seconds(tally->load_seconds());
  fresh.set_epoch(tally->epoch());
  fresh.set_epoch_build_seconds(tally->epoch_build_seconds());
  fresh.set_epoch_load_seconds(tally->epoch_load_seconds());
  *fresh.mutable_environments() = tally->environments();
  *fresh.mutable_checkpoint_writes() = tally->checkpoint_writes();
  *tally = std::move(fresh);
}

std::string Percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

// "2 x AMD EPYC-Genoa (cpu, avx512_bf16, 1 thread a rank)", one line for each kind.
void FillDevices(const Job& job, v1::Receipt::Environment* environment) {
  std::map<std::string, int> devices;
  const auto& ready = job.tally.environments();
  for (int rank = 0; rank < job.plan.ranks_size(); ++rank) {
    const std::string level = rank < ready.size() && !ready[rank].kernel_level().empty()
                                  ? ready[rank].kernel_level()
                                  : job.plan.device().kernel_level();
    const int threads = std::max(1, job.plan.threads_per_rank());
    ++devices[fmt::format("{} ({}, {}, {} thread{} a rank)", job.plan.device().model(),
                          job.plan.device().kind(), level, threads, threads == 1 ? "" : "s")];
  }
  for (const auto& [device, count] : devices) {
    environment->add_devices(fmt::format("{} x {}", count, device));
  }
}

void FillEnvironment(const Job& job, v1::Receipt* receipt) {
  v1::Receipt::Environment* const environment = receipt->mutable_environment();
  if (job.plan.has_device()) FillDevices(job, environment);
  const v1::DeviceKind& kind = job.plan.device();
  environment->set_libraries(kind.nccl().empty() ? kind.versions() : fmt::format("{}; NCCL {}", kind.versions(), kind.nccl()));
  std::set<std::string> flags, transports, hosts, islands, precisions, implementations;
  for (const v1::RankEnvironment& rank : job.tally.environments()) {
    flags.insert(rank.flags().begin(), rank.flags().end());
    implementations.insert(rank.implementations().begin(), rank.implementations().end());
    if (!rank.transport().empty()) transports.insert(rank.transport());
    if (!rank.executed_precision().empty()) precisions.insert(rank.executed_precision());
    for (const v1::OperationCount& fallback : rank.fallbacks()) {
      Count(fallback.operation(), fallback.count(), receipt->mutable_fallbacks());
    }
  }
  for (const v1::RankPlacement& placement : job.last_group.ranks()) {
    hosts.insert(placement.host());
    islands.insert(placement.island().empty() ? placement.host() : placement.island());
  }
  for (const std::string& flag : flags) environment->add_flags(flag);
  for (const std::string& transport : transports) environment->add_transports(transport);
  for (const std::string& implementation : implementations) environment->add_implementations(implementation);
  environment->set_hosts(static_cast<int>(hosts.size()));
  environment->set_islands(static_cast<int>(islands.size()));
  receipt->set_ready(!precisions.empty());
  receipt->set_precision_executed(fmt::format("{}", fmt::join(precisions, "; ")));
}

bool HasFloat8(const v1::TrainingSpec& training) {
  return training.float8().has_recipe() && training.float8().recipe() != "none";
}

std::string IntendedPrecision(const v1::TrainingSpec& training) {
  std::string text = training.compute_dtype();
  const v1::MixedPrecision& mixed = training.mixed_precision();
  if (mixed.has_param()) text += fmt::format(", param {}", mixed.param());
  if (mixed.has_reduce()) text += fmt::format(", reduce {}", mixed.reduce());
  if (mixed.has_buffer()) text += fmt::format(", buffer {}", mixed.buffer());
  if (HasFloat8(training)) {
    text += fmt::format(", float8 {}", training.float8().recipe());
  }
  return text;
}

// A stage may be without linear layers, but not all of them.
bool IsAsIntended(const v1::TrainingSpec& training, std::string_view executed) {
  if (!HasFloat8(training)) return executed.starts_with(training.compute_dtype());
  const std::string due = fmt::format("float8 products of linear layers, {} scaling", training.float8().recipe());
  return executed.find(due) != std::string_view::npos;
}

void FillModel(const Job& job, v1::Receipt* receipt) {
  receipt->set_pattern(job.spec.model().pattern());
  std::map<char, int> blocks;
  for (const v1::ChunkPlan& chunk : job.plan.chunks()) {
    for (const char block : chunk.blocks()) ++blocks[block];
  }
  for (const auto& [block, count] : blocks) {
    v1::BlockCount* const entry = receipt->add_blocks();
    entry->set_block(std::string(1, block));
    entry->set_count(count);
  }
  const bool recurrent = blocks.contains('M') || blocks.contains('R');
  receipt->set_workload_family(recurrent              ? "hybrid"
                               : blocks.contains('E') ? "sparse"
                                                      : "dense");
}

void FillGeometry(const Job& job, v1::Receipt* receipt) {
  const v1::TrainingSpec& training = job.spec.training();
  const Mesh mesh(job.plan.mesh());
  v1::Receipt::BatchGeometry* const batch = receipt->mutable_batch_geometry();
  batch->set_global_batch_size(training.global_batch_size());
  batch->set_micro_batch_size(training.micro_batch_size());
  batch->set_microbatches(job.plan.schedule().microbatches());
  batch->set_data_ranks(mesh.data_ranks());
  receipt->set_sequence_length(training.sequence_length());
}

void FillSteady(const Job& job, v1::Receipt* receipt) {
  const v1::ReceiptTally& tally = job.tally;
  v1::Receipt::Steady* const steady = receipt->mutable_steady();
  steady->set_steps(tally.steady_steps());
  steady->set_seconds(tally.steady_seconds());
  steady->set_mfu_convention(kMfuConvention);
  steady->set_fastest_step_seconds(tally.fastest_step_seconds());
  steady->set_slowest_step_seconds(tally.slowest_step_seconds());
  steady->set_bubble_planned(job.plan.schedule().bubble_ratio());
  if (tally.steady_seconds() > 0) {
    steady->set_tokens_per_second(static_cast<double>(tally.steady_tokens()) /
                                  tally.steady_seconds());
  }
  if (tally.peak_steps() == tally.steady_steps() && tally.steady_peak_flops() > 0) {
    steady->set_mfu(tally.steady_model_flops() / tally.steady_peak_flops());
  }
  // Where host and device are one there is nothing to synchronise with, or to launch.
  if (job.plan.device().kind() == "cpu") {
    steady->set_host_syncs_per_step(0);
    steady->set_graph_launches_per_step(0);
  }
  if (tally.rank_steps() == 0) return;
  const auto mean = [&](double sum) { return sum / static_cast<double>(tally.rank_steps()); };
  steady->set_bubble_measured(mean(tally.bubble_ratio()));
  steady->set_data_wait_seconds(mean(tally.data_wait_seconds()));
  steady->set_host_syncs_per_step(mean(static_cast<double>(tally.host_waits())));
  steady->set_graph_launches_per_step(mean(static_cast<double>(tally.graph_launches())));
  steady->set_core_wait_seconds(mean(tally.core_wait_seconds()));
  for (const v1::CommunicationSeconds& sums : tally.communication()) {
    v1::CommunicationSeconds* const communication = steady->add_communication();
    communication->set_purpose(sums.purpose());
    communication->set_exposed(mean(sums.exposed()));
    communication->set_total(mean(sums.total()));
  }
  const double attention = job.plan.attention_flops_per_step();
  if (tally.steady_steps() > 0 && attention > 0) {
    const double flops = tally.steady_model_flops() / static_cast<double>(tally.steady_steps());
    receipt->set_seen_pairs(1 - (job.plan.model_flops_per_step() - flops) / attention);
  }
}

// Whether the job ran at the shape that its file asks for.
void FillTarget(const Job& job, v1::Receipt* receipt) {
  const v1::TrainingSpec& training = job.spec.training();
  receipt->set_target_tokens_per_step(training.global_batch_size() * training.sequence_length());
  const v1::ParallelismSpec& asked = job.spec.parallelism();
  const v1::MeshDegrees& mesh = job.plan.mesh();
  const bool same_layout = asked.data_parallel_replicate_degree() == mesh.data_replicate() &&
                           asked.data_parallel_shard_degree() == mesh.data_shard() &&
                           asked.tensor_parallel_degree() == mesh.tensor() &&
                           asked.pipeline_parallel_degree() == mesh.pipe() &&
                           asked.context_parallel_degree() == mesh.context() &&
                           asked.expert_parallel_degree() == mesh.expert();
  if (!same_layout) {
    receipt->set_target_missed("the job runs on another layout than its file asks for");
  } else if (job.tally.steady_steps() == 0) {
    receipt->set_target_missed("no steady step");
  } else {
    receipt->set_target_reached(true);
  }
}

void FillOverlap(const Job& job, v1::Receipt* receipt) {
  const v1::ParallelismSpec& parallelism = job.spec.parallelism();
  const v1::MeshDegrees& mesh = job.plan.mesh();
  std::vector<std::string> policy;
  if (mesh.pipe() > 1) policy.push_back("pipeline sends and posted receives overlap computing");
  if (mesh.context() > 1 && parallelism.context_parallel_method() == "ring") {
    policy.push_back("the next KV block is in flight while the present one is computed");
  }
  if (mesh.data_replicate() * mesh.data_shard() * mesh.context() * mesh.expert() > 1) {
    policy.push_back(
        "parameters gathered once a step are awaited by their first reader; sums of gradients begin "
        "in the last microbatch");
  }
  policy.push_back(
      "within a piece collectives begin early and are waited for late, where work in between can "
      "hide them");
  receipt->set_overlap_policy(fmt::format("{}", fmt::join(policy, "; ")));
}

void FillSuspect(const Job& job, v1::Receipt* receipt) {
  const v1::ReceiptTally& tally = job.tally;
  const auto say = [&](std::string reason) { receipt->add_suspect(std::move(reason)); };
  if (tally.steady_steps() < kFewSteps) {
    say(fmt::format("{} steady steps, fewer than {}", tally.steady_steps(), kFewSteps));
  }
  for (const v1::RankEnvironment& rank : tally.environments()) {
    const int wanted = rank.ranks_on_host() * rank.threads();
    if (rank.cores_on_host() == 0 || wanted <= rank.cores_on_host()) continue;
    say(fmt::format("{} ranks of {} threads share {} cores of a host", rank.ranks_on_host(),
                    rank.threads(), rank.cores_on_host()));
    break;
  }
  for (const v1::OperationCount& fallback : receipt->fallbacks()) {
    say(fmt::format("{} {} operations run on slow reference code", fallback.count(),
                    fallback.operation()));
  }
  const double step_seconds =
      tally.rank_steps() > 0 ? tally.rank_seconds() / static_cast<double>(tally.rank_steps()) : 0;
  const double core_wait = receipt->steady().core_wait_seconds();
  if (step_seconds > 0 && core_wait > kMuchCoreWait * step_seconds) {
    say(fmt::format("step threads waited {} of the time for a core that other work had",
                    Percent(core_wait / step_seconds)));
  }
  if (tally.fastest_step_seconds() > 0 &&
      tally.slowest_step_seconds() > kUnevenSteps * tally.fastest_step_seconds()) {
    say(fmt::format("uneven steps: the slowest steady one took {:.2f} times the fastest",
                    tally.slowest_step_seconds() / tally.fastest_step_seconds()));
  }
  if (job.record.restarts() > 0) say(fmt::format("{} recoveries", job.record.restarts()));
  if (tally.steps_of_other_plans() > 0) {
    say(fmt::format("{} steps ran under another plan and are left out",
                    tally.steps_of_other_plans()));
  }
  if (receipt->ready() && !IsAsIntended(job.spec.training(), receipt->precision_executed())) {
    say(fmt::format("{} was intended and {} executed", receipt->precision_intended(),
                    receipt->precision_executed()));
  }
  for (const std::string& flag : receipt->environment().flags()) {
    if (flag.starts_with("TROUPE_FAILPOINTS=")) say(fmt::format("faults are injected: {}", flag));
  }
}

}  // namespace

void TallyReady(uint64_t epoch, int32_t rank, const v1::RankEnvironment& environment,
                v1::ReceiptTally* tally) {
  if (epoch != tally->epoch()) {
    tally->set_build_seconds(tally->build_seconds() + tally->epoch_build_seconds());
    tally->set_load_seconds(tally->load_seconds() + tally->epoch_load_seconds());
    tally->set_epoch(epoch);
    tally->set_epoch_build_seconds(0);
    tally->set_epoch_load_seconds(0);
    tally->clear_environments();
  }
  while (tally->environments_size() <= rank) tally->add_environments();
  v1::RankEnvironment& known = *tally->mutable_environments(rank);
  if (known.programs() > 0) return;  // said again
  known = environment;
  tally->set_programs(tally->programs() + environment.programs());
  tally->set_epoch_build_seconds(
      std::max(tally->epoch_build_seconds(), environment.build_seconds()));
  tally->set_epoch_load_seconds(std::max(tally->epoch_load_seconds(), environment.load_seconds()));
}

void TallyStep(const v1::StepReport& report, const std::string& plan_digest, double model_flops,
               double peak_flops, v1::ReceiptTally* tally) {
  const double seconds = report.step_seconds();
  if (!(seconds > 0) || !std::isfinite(seconds)) return;
  if (plan_digest != tally->plan_digest()) BeginPlan(plan_digest, tally);
  const bool global = report.rank() == 0;
  if (report.epoch_step() <= kWarmUpSteps) {
    if (!global) return;
    tally->set_warm_up_steps(tally->warm_up_steps() + 1);
    tally->set_warm_up_seconds(tally->warm_up_seconds() + seconds);
    return;
  }
  if (report.disturbed()) {
    if (global) tally->set_steps_apart(tally->steps_apart() + 1);
    return;
  }
  tally->set_rank_steps(tally->rank_steps() + 1);
  tally->set_rank_seconds(tally->rank_seconds() + seconds);
  tally->set_bubble_ratio(tally->bubble_ratio() + report.bubble_seconds() / seconds);
  tally->set_data_wait_seconds(tally->data_wait_seconds() + report.data_wait_seconds());
  tally->set_host_waits(tally->host_waits() + report.host_waits());
  tally->set_graph_launches(tally->graph_launches() + report.graph_launches());
  tally->set_core_wait_seconds(tally->core_wait_seconds() + report.core_wait_seconds());
  for (const v1::StepCommunication& step : report.communication()) {
    v1::CommunicationSeconds& sums = EntryOf(step.purpose(), tally->mutable_communication());
    sums.set_exposed(sums.exposed() + step.exposed_seconds());
    sums.set_total(sums.total() + step.total_seconds());
  }
  if (!global) return;
  tally->set_fastest_step_seconds(tally->steady_steps() == 0
                                      ? seconds
                                      : std::min(tally->fastest_step_seconds(), seconds));
  tally->set_slowest_step_seconds(std::max(tally->slowest_step_seconds(), seconds));
  tally->set_steady_steps(tally->steady_steps() + 1);
  tally->set_steady_seconds(tally->steady_seconds() + seconds);
  tally->set_steady_tokens(tally->steady_tokens() + report.tokens());
  tally->set_steady_model_flops(tally->steady_model_flops() + model_flops);
  if (peak_flops > 0) {
    tally->set_steady_peak_flops(tally->steady_peak_flops() + peak_flops * seconds);
    tally->set_peak_steps(tally->peak_steps() + 1);
  }
}

void TallyWrite(const std::string& method, v1::ReceiptTally* tally) {
  Count(method, 1, tally->mutable_checkpoint_writes());
}

v1::Receipt MakeReceipt(const Job& job) {
  const v1::ReceiptTally& tally = job.tally;
  v1::Receipt receipt;
  receipt.set_job("jobs/" + job.id());
  receipt.set_state(StateName(ShownState(job)));
  receipt.set_plan_digest(job.plan.digest());
  *receipt.mutable_topology() = job.plan.mesh();
  receipt.set_document_mask(job.spec.data().document_mask());
  receipt.set_precision_intended(IntendedPrecision(job.spec.training()));
  receipt.set_schedule(job.plan.schedule().name());
  *receipt.mutable_bucket() = job.plan.bucket();
  receipt.set_bucket_measured_on(
      job.spec.parallelism().bucket().has_elements()
          ? "nothing: the job file states it"
          : "nothing here: Megatron-LM's constants, inherited from clusters of NVIDIA GPUs");
  FillEnvironment(job, &receipt);
  FillModel(job, &receipt);
  FillGeometry(job, &receipt);
  FillOverlap(job, &receipt);
  if (tally.programs() > 0) {
    v1::Receipt::Compile* const compile = receipt.mutable_compile();
    compile->set_count(tally.programs());
    compile->set_seconds(tally.build_seconds() + tally.epoch_build_seconds());
    compile->set_load_seconds(tally.load_seconds() + tally.epoch_load_seconds());
  }
  receipt.mutable_warm_up()->set_steps(tally.warm_up_steps());
  receipt.mutable_warm_up()->set_seconds(tally.warm_up_seconds());
  receipt.set_steps_apart(tally.steps_apart());
  FillSteady(job, &receipt);
  FillTarget(job, &receipt);
  *receipt.mutable_checkpoint_writes() = tally.checkpoint_writes();
  receipt.set_restarts(job.record.restarts());
  FillSuspect(job, &receipt);
  return receipt;
}

}  // namespace troupe
