#include "coordinator/history/receipt_conditions.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/count_text.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/operation_counts.h"
#include "model/blocks/pattern.h"
#include "plan/cost/overlapped_pairs.h"
#include "plan/device/device_traits.h"
#include "plan/job/job_choices.h"
#include "plan/job/job_name.h"
#include "plan/text/precision_words.h"

namespace troupe {
namespace {

// One line per kind of device, for example "2 x AMD EPYC-Genoa (cpu, avx512_bf16, 1 thread per
// rank)".
void FillDevices(const Job& job, v1::Receipt::Environment* environment) {
  std::map<std::string, int> devices;
  const auto& ready = job.tally.environments();
  for (int rank = 0; rank < job.plan.ranks_size(); ++rank) {
    const std::string level = rank < ready.size() && !ready[rank].kernel_level().empty()
                                  ? ready[rank].kernel_level()
                                  : job.plan.device().kernel_level();
    const int threads = std::max(1, job.plan.threads_per_rank());
    ++devices[fmt::format("{} ({}, {}, {} per rank)", job.plan.device().model(),
                          job.plan.device().kind(), level, CountText(threads, "thread"))];
  }
  for (const auto& [device, count] : devices) {
    environment->add_devices(fmt::format("{} x {}", count, device));
  }
}

// Separates the driver from the libraries; both versions are as the device's worker found them.
void FillVersions(const v1::DeviceKind& kind, v1::Receipt::Environment* environment) {
  std::vector<std::string> libraries;
  for (std::string_view rest = kind.versions(); !rest.empty();) {
    const size_t end = rest.find("; ");
    const std::string_view version = rest.substr(0, end);
    if (version.starts_with("driver ")) {
      environment->set_driver(std::string(version));
    } else {
      libraries.emplace_back(version);
    }
    rest = end == std::string_view::npos ? "" : rest.substr(end + 2);
  }
  if (!kind.nccl().empty()) libraries.push_back("NCCL " + kind.nccl());
  environment->set_libraries(fmt::format("{}", fmt::join(libraries, "; ")));
}

void FillEnvironment(const Job& job, v1::Receipt* receipt) {
  v1::Receipt::Environment* const environment = receipt->mutable_environment();
  if (job.plan.has_device()) FillDevices(job, environment);
  FillVersions(job.plan.device(), environment);
  std::set<std::string> flags, transports, hosts, islands, precisions, implementations;
  for (const v1::RankEnvironment& rank : job.tally.environments()) {
    flags.insert(rank.flags().begin(), rank.flags().end());
    implementations.insert(rank.implementations().begin(), rank.implementations().end());
    for (const std::string& link : rank.links()) {
      transports.insert(fmt::format("{}: {}", rank.transport(), link));
    }
    if (rank.links().empty() && !rank.transport().empty()) transports.insert(rank.transport());
    if (!rank.executed_precision().empty()) precisions.insert(rank.executed_precision());
    for (const v1::OperationCount& fallback : rank.fallbacks()) {
      CountOperation(fallback.operation(), fallback.count(), receipt->mutable_fallbacks());
    }
  }
  for (const v1::RankPlacement& placement : job.last_group.ranks()) {
    hosts.insert(placement.host());
    islands.insert(placement.island().empty() ? placement.host() : placement.island());
  }
  for (const std::string& flag : flags) environment->add_flags(flag);
  for (const std::string& transport : transports) environment->add_transports(transport);
  for (const std::string& implementation : implementations)
    environment->add_implementations(implementation);
  environment->set_hosts(static_cast<int>(hosts.size()));
  environment->set_islands(static_cast<int>(islands.size()));
  receipt->set_ready(!precisions.empty());
  receipt->set_precision_executed(fmt::format("{}", fmt::join(precisions, "; ")));
}

// The part of a rank's text that describes matmuls outside of float8.
std::string_view PlainPart(std::string_view executed) {
  constexpr std::string_view kElse = "; else ";
  const size_t at = executed.find(kElse);
  return at == std::string_view::npos ? executed : executed.substr(at + kElse.size());
}

// Whether the matmuls of every rank ran in the intended precision, and the float8 matmuls on at
// least one rank: a stage may have no linear layers, but not every stage.
bool IsAsIntended(const Job& job) {
  const v1::TrainingSpec& training = job.spec.training();
  const std::string due = fmt::format("of linear layers, {} scaling", training.float8().recipe());
  bool has_float8 = !UsesFloat8(job.spec.training());
  for (const v1::RankEnvironment& rank : job.tally.environments()) {
    const std::string_view executed = rank.executed_precision();
    if (executed.empty()) continue;  // the rank has not reported it yet
    const bool in_float8 =
        UsesFloat8(job.spec.training()) && executed.find(due) != std::string_view::npos;
    has_float8 |= in_float8;
    const std::string_view plain = PlainPart(executed);
    const bool all_in_float8 = in_float8 && plain == executed;
    if (!all_in_float8 && !plain.starts_with(training.compute_dtype())) return false;
    if (executed.find(" multiplied as ") != std::string_view::npos) return false;
  }
  return has_float8;
}

// Adds the options that ranks gave to their compilers; until one has, those that the plan states.
void FillCompilerOptions(const Job& job, v1::Receipt* receipt) {
  std::set<std::string> options;
  bool is_known = false;
  for (const v1::RankEnvironment& rank : job.tally.environments()) {
    is_known |= rank.has_compilation();
    options.insert(rank.compilation().options().begin(), rank.compilation().options().end());
  }
  if (!is_known) {
    options.insert(job.plan.compiler_options().begin(), job.plan.compiler_options().end());
  }
  for (const std::string& option : options) receipt->add_compiler_options(option);
}

// Returns the difference of the options of a rank's compiler from those of the plan; empty: none.
std::string OptionDifference(const std::set<std::string>& planned,
                             const std::set<std::string>& used) {
  std::vector<std::string> added, lacking;
  std::ranges::set_difference(used, planned, std::back_inserter(added));
  std::ranges::set_difference(planned, used, std::back_inserter(lacking));
  std::vector<std::string> parts;
  if (!added.empty()) parts.push_back(fmt::format("it got {}", fmt::join(added, ", ")));
  if (!lacking.empty()) parts.push_back(fmt::format("it did not get {}", fmt::join(lacking, ", ")));
  return fmt::format("{}", fmt::join(parts, ", and "));
}

void AddSuspectOptions(const Job& job, v1::Receipt* receipt) {
  const auto& options = job.plan.compiler_options();
  const std::set<std::string> planned(options.begin(), options.end());
  for (int r = 0; r < job.tally.environments_size(); ++r) {
    const v1::RankEnvironment& rank = job.tally.environments(r);
    if (!rank.has_compilation()) continue;
    const auto& used = rank.compilation().options();
    const std::string difference = OptionDifference(planned, {used.begin(), used.end()});
    if (difference.empty()) continue;
    receipt->add_suspect(fmt::format(
        "the compiler of rank {} ran with other options than the plan's: {}", r, difference));
    return;
  }
}

void FillModel(const Job& job, v1::Receipt* receipt) {
  receipt->set_pattern(job.spec.model().pattern());
  std::map<char, int> blocks;
  for (const v1::ChunkPlan& chunk : job.plan.chunks()) {
    for (const char block : chunk.blocks()) ++blocks[block];
  }
  std::string letters;
  for (const auto& [block, count] : blocks) {
    letters += block;
    v1::BlockCount* const entry = receipt->add_blocks();
    entry->set_block(std::string(1, block));
    entry->set_count(count);
  }
  if (job.plan.has_trained_parameters())
    receipt->set_trained_parameters(job.plan.trained_parameters());
  receipt->set_workload_family(model::HasBlock(letters, &model::BlockKind::is_recurrent) ? "hybrid"
                               : model::HasExperts(letters)                              ? "sparse"
                                                                                         : "dense");
}

void FillGeometry(const Job& job, v1::Receipt* receipt) {
  const v1::TrainingSpec& training = job.spec.training();
  const v1::MeshDegrees& mesh = job.plan.mesh();
  v1::Receipt::BatchGeometry* const batch = receipt->mutable_batch_geometry();
  batch->set_global_batch_size(training.global_batch_size());
  batch->set_micro_batch_size(training.micro_batch_size());
  batch->set_microbatches(job.plan.schedule().microbatches());
  batch->set_data_ranks(std::max<int64_t>(1, mesh.data_replicate()) *
                        std::max<int64_t>(1, mesh.data_shard()) *
                        std::max<int64_t>(1, mesh.expert()));
  receipt->set_sequence_length(training.sequence_length());
}

// Adds the shape that the job's file asks for, and whether the ranks have it.
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
  if (same_layout) return;
  receipt->set_target_missed("the job runs on a layout other than the one in its job file");
}

void FillOverlap(const Job& job, v1::Receipt* receipt) {
  const v1::MeshDegrees& mesh = job.plan.mesh();
  std::vector<std::string> policy;
  if (mesh.pipe() > 1) policy.push_back("pipeline sends and posted receives overlap with compute");
  if (mesh.context() > 1 && ChoicesOf(job.spec).context_method == v1::CONTEXT_METHOD_RING) {
    policy.push_back("the next KV block is in flight while the current one is computed");
  }
  if (mesh.data_replicate() * mesh.data_shard() * mesh.context() * mesh.expert() > 1) {
    policy.push_back(
        "parameters that are gathered once per step are awaited by their first reader; gradients "
        "are reduced from the last microbatch on");
  }
  if (std::string pairs = PairsLine(job.plan); !pairs.empty()) policy.push_back(std::move(pairs));
  policy.push_back(
      "within an action, collectives start early and are awaited late, so that work in between can "
      "hide them");
  receipt->set_overlap_policy(fmt::format("{}", fmt::join(policy, "; ")));
}

// Adds reasons why figures measured under these conditions may mislead.
void AddSuspectConditions(const Job& job, v1::Receipt* receipt) {
  const auto add = [&](std::string reason) { receipt->add_suspect(std::move(reason)); };
  for (const v1::RankEnvironment& rank : job.tally.environments()) {
    const int wanted = rank.ranks_on_host() * rank.threads();
    if (rank.cores_on_host() == 0 || wanted <= rank.cores_on_host()) continue;
    add(fmt::format("{} of {} {} {} of a host", CountText(rank.ranks_on_host(), "rank"),
                    CountText(rank.threads(), "thread"),
                    rank.ranks_on_host() == 1 ? "shares" : "each share",
                    CountText(rank.cores_on_host(), "core")));
    break;
  }
  for (const v1::OperationCount& fallback : receipt->fallbacks()) {
    add(fmt::format("{} of {} to a slower implementation", CountText(fallback.count(), "fallback"),
                    fallback.operation()));
  }
  if (job.record.restarts() > 0) add(CountText(job.record.restarts(), "recovery", "recoveries"));
  if (receipt->ready() && !IsAsIntended(job)) {
    add(fmt::format("the precision is not the intended one: {} was intended, {} was executed",
                    receipt->precision_intended(), receipt->precision_executed()));
  }
  for (const std::string& flag : receipt->environment().flags()) {
    if (flag.starts_with("TROUPE_FAILPOINTS=")) add(fmt::format("faults are injected: {}", flag));
  }
  AddSuspectOptions(job, receipt);
}

}  // namespace

v1::Receipt ConditionsOf(const Job& job) {
  v1::Receipt receipt;
  receipt.set_job(JobName(job.id()));
  receipt.set_plan_digest(job.plan.digest());
  *receipt.mutable_topology() = job.plan.mesh();
  receipt.set_document_mask(job.spec.data().document_mask());
  receipt.set_precision_intended(IntendedPrecision(job.spec));
  receipt.set_schedule(job.plan.schedule().name());
  *receipt.mutable_bucket() = job.plan.bucket();
  const v1::BucketSpec& bucket = job.spec.parallelism().bucket();
  receipt.set_bucket_measured_on(
      bucket.has_elements() && bucket.has_alignment() && bucket.has_padding()
          ? "nothing: the job file states all values"
          : "nothing here: values that the job file does not state are Megatron-LM's defaults, "
            "which were chosen on clusters of NVIDIA GPUs");
  FillEnvironment(job, &receipt);
  FillCompilerOptions(job, &receipt);
  FillModel(job, &receipt);
  FillGeometry(job, &receipt);
  FillOverlap(job, &receipt);
  FillTarget(job, &receipt);
  receipt.mutable_steady()->set_bubble_planned(job.plan.schedule().bubble_ratio());
  const DeviceTraits* const device = FindDeviceTraits(job.plan.device());
  if (device != nullptr && device->shares_host_cores) {
    // There is nothing to synchronise or launch.
    receipt.mutable_steady()->mutable_mean()->set_host_syncs_per_step(0);
    receipt.mutable_steady()->mutable_mean()->set_graph_launches_per_step(0);
  }
  receipt.set_restarts(job.record.restarts());
  receipt.set_moves(job.record.moves());
  AddSuspectConditions(job, &receipt);
  return receipt;
}

}  // namespace troupe
