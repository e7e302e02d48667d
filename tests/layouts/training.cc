#include "tests/layouts/training.h"

#include <google/protobuf/util/json_util.h>
#include <omp.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/file_system.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/write/ownership.h"
#include "collective/loopback/loopback_cluster.h"
#include "data/indexed_dataset_writer.h"
#include "data/job_data.h"
#include "kernels/cpu/cpu_backend.h"
#include "model/build.h"
#include "plan/job/job_defaults.h"
#include "plan/make_plan.h"
#include "plan/validate/stage_inputs.h"
#include "worker/executor/frozen_weights.h"
#include "worker/executor/initial_weights.h"
#include "worker/executor/rank_program.h"
#include "worker/executor/shards.h"
#include "worker/executor/step_order.h"

namespace troupe {
namespace {

class CountingBackend : public kernels::Backend {
 public:
  CountingBackend(kernels::Backend& backend, int64_t* prepares)
      : backend_(backend), prepares_(prepares) {}
  std::string kernel_level() const override { return backend_.kernel_level(); }
  StatusOr<std::unique_ptr<kernels::Executable>> Prepare(
      const model::Program& program, const model::MemoryPlan& plan,
      const kernels::FindCommunicator& find) override {
    ++*prepares_;
    return backend_.Prepare(program, plan, find);
  }
  const std::vector<std::string>& fallbacks() const override { return backend_.fallbacks(); }
  const std::vector<std::string>& implementations() const override {
    return backend_.implementations();
  }
  std::vector<kernels::ExecutedMatmul> executed_matmuls() const override {
    return backend_.executed_matmuls();
  }
  kernels::PreparationCounts preparation_counts() const override {
    return backend_.preparation_counts();
  }

 private:
  kernels::Backend& backend_;
  int64_t* const prepares_;
};

struct Shared {
  const v1::JobSpec& spec;
  const TrainOptions& options;
  v1::Plan plan;
  LoopbackCluster& cluster;
  PosixFileSystem files;
  std::mutex mutex;
  std::vector<v1::ShardFile> shards;
};

// Runs steps up to `last_step`, or to a stop that some rank knows of.
Status TrainSteps(const TrainOptions& options, int rank, int64_t last_step, Executor& executor,
                  std::vector<StepResult>* steps, std::vector<int64_t>* acted_after) {
  using Move = StepOrder::Move;
  const auto inputs_of = [&](int64_t step) {
    return options.inputs ? options.inputs(rank, step) : ControlInputs{};
  };
  StepOrder order(executor.options().control_lag_steps, executor.applied_step(), last_step);
  int64_t requested = 0;
  bool stops = false;
  for (Move move = order.Next(); move != Move::kEnd; move = order.Next()) {
    const int64_t next = order.submitted() + 1;
    if (move == Move::kAgree) {
      const int64_t own[] = {std::max(next, inputs_of(next).ticket_end)};
      TROUPE_ASSIGN_OR_RETURN(const std::vector<int64_t> agreed, executor.AgreeOnLeast(own));
      order.Agreed(agreed[0]);
    } else if (move == Move::kSubmit) {
      TROUPE_RETURN_IF_ERROR(executor.SubmitGradients());
      const ControlInputs inputs = inputs_of(next);
      if (options.before_update) options.before_update(rank, executor);
      TROUPE_RETURN_IF_ERROR(executor.SubmitUpdate(inputs));
      order.Submitted(executor.DrainsAfter(next));
    } else if (move == Move::kComplete) {
      TROUPE_ASSIGN_OR_RETURN(const StepResult result, executor.Complete());
      order.Completed(result.ticket_end);
      if (result.stop || result.request_attempt > requested) order.ActAfter(order.submitted());
      requested = result.request_attempt;
      stops |= result.stop;
      if (options.after_step) options.after_step(rank, executor, result);
      steps->push_back(result);
    } else {
      acted_after->push_back(order.submitted());
      order.Acted(stops);
    }
  }
  return OkStatus();
}

// Makes the rank's program, as the options of the test have it.
StatusOr<RankProgram> MakeProgram(const Shared& shared, int rank) {
  v1::JobSpec spec = shared.spec;
  if (shared.options.mislead) shared.options.mislead(rank, &spec);
  TROUPE_ASSIGN_OR_RETURN(RankProgram built, MakeRankProgram(spec, shared.plan, rank));
  if (!shared.options.overlap) {
    TROUPE_ASSIGN_OR_RETURN(const DecodedJob job, DecodeJob(spec));
    TROUPE_ASSIGN_OR_RETURN(model::BuildOptions build,
                            MakeStageBuildOptions(job, shared.plan, rank));
    build.overlap = false;
    const ActionList& actions = built.options.actions;
    TROUPE_ASSIGN_OR_RETURN(built.program, model::BuildProgram(build));
    built.memory = model::PlanMemory(built.program, actions.buffers, actions.split_backward, 1);
  }
  return built;
}

// Loads initial weights or the state to restore, and returns the step after which training goes on.
StatusOr<int64_t> Load(Shared& shared, Executor& executor) {
  const std::string& path = shared.options.restore_path;
  if (path.empty()) {
    TROUPE_RETURN_IF_ERROR(
        LoadInitialWeights(shared.files, shared.spec, executor.program(), executor.executable()));
    return 0;
  }
  TROUPE_ASSIGN_OR_RETURN(const auto manifest, ReadManifest(shared.files, path, ""));
  TROUPE_RETURN_IF_ERROR(LoadFrozenWeights({shared.files, shared.files}, shared.spec,
                                           executor.program(), executor.executable()));
  TROUPE_RETURN_IF_ERROR(
      LoadState(shared.files, path, manifest, executor.program(), executor.executable()));
  return manifest.state().step();
}

// Saves the rank's shard if the options of the test require it.
Status Save(Shared& shared, int rank, Executor& executor) {
  const std::string& path = shared.options.save_path;
  if (path.empty()) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const auto slices, SlicesOfRanks(shared.spec, shared.plan));
  TROUPE_RETURN_IF_ERROR(MakeAttemptDirectory(shared.files, path));
  TROUPE_ASSIGN_OR_RETURN(v1::ShardFile shard,
                          WriteShard(shared.files, path, rank,
                                     OwnedTensors(AssignOwners(slices)[rank], executor.program(),
                                                  executor.executable())));
  std::lock_guard lock(shared.mutex);
  shared.shards.push_back(std::move(shard));
  return OkStatus();
}

Status TrainRank(Shared& shared, int rank, std::vector<StepResult>* steps,
                 std::vector<int64_t>* acted_after, int64_t* prepares,
                 std::array<PurposeSeconds, kPurposes>* communication) {
  omp_set_num_threads(1);
  TROUPE_ASSIGN_OR_RETURN(RankProgram built, MakeProgram(shared, rank));
  TROUPE_ASSIGN_OR_RETURN(const Dataset dataset,
                          Dataset::Open(shared.files, MakeDatasetOptions(shared.spec)));
  const auto make_backend = [&]() -> StatusOr<std::unique_ptr<kernels::Backend>> {
    if (shared.options.make_backend) return shared.options.make_backend(rank);
    return kernels::CpuBackend::Make({.threads = 1});
  };
  TROUPE_ASSIGN_OR_RETURN(const std::unique_ptr<kernels::Backend> made, make_backend());
  CountingBackend backend(*made, prepares);
  StepProgress progress;
  CollectiveNetwork& network = shared.cluster.network(rank);
  TROUPE_ASSIGN_OR_RETURN(const auto executor,
                          Executor::Make(std::move(built.options), built.program, built.memory,
                                         backend, network, dataset, &progress));
  // A failing rank aborts the others, and the transport releases this rank's memory before the
  // executor frees it.
  struct CloseAtEnd {
    CollectiveNetwork& network;
    bool failed = true;
    ~CloseAtEnd() {
      if (failed) network.Abort(Cancelled("a rank of the test failed"));
      TROUPE_CHECK_OK(network.Close(std::chrono::seconds(10)));
    }
  } close{network};
  TROUPE_RETURN_IF_ERROR(network.Connect(shared.cluster.addresses(), std::chrono::seconds(10)));
  TROUPE_RETURN_IF_ERROR(executor->Start());
  TROUPE_ASSIGN_OR_RETURN(const int64_t applied, Load(shared, *executor));
  TROUPE_RETURN_IF_ERROR(executor->FinishLoading(applied));
  if (shared.options.before_steps) shared.options.before_steps(rank, *executor);
  const std::array<PurposeSeconds, kPurposes> before = network.SecondsByPurpose();
  const Status trained = TrainSteps(shared.options, rank, applied + shared.options.steps, *executor,
                                    steps, acted_after);
  if (!trained.ok() && shared.options.after_failure) shared.options.after_failure(rank, *executor);
  TROUPE_RETURN_IF_ERROR(trained);
  *communication = network.SecondsByPurpose();
  for (size_t p = 0; p < before.size(); ++p) {
    (*communication)[p].total -= before[p].total;
    (*communication)[p].exposed -= before[p].exposed;
  }
  if (shared.options.after_steps) shared.options.after_steps(rank, *executor);
  TROUPE_RETURN_IF_ERROR(Save(shared, rank, *executor));
  close.failed = false;
  return OkStatus();
}

}  // namespace

v1::JobSpec SmallJob(const Layout& layout, const std::string& data_prefix, int64_t steps) {
  v1::JobSpec spec;
  spec.set_name("small");
  v1::ModelSpec& model = *spec.mutable_model();
  model.set_pattern("(AD)x2");
  model.set_hidden_size(64);
  model.set_num_attention_heads(4);
  model.set_num_key_value_heads(4);
  model.set_intermediate_size(96);
  model.set_vocab_size(259);
  spec.mutable_data()->set_train(data_prefix);
  v1::TrainingSpec& training = *spec.mutable_training();
  training.set_steps(steps);
  training.set_seed(11);
  training.set_sequence_length(16);
  training.set_global_batch_size(12);
  training.set_micro_batch_size(1);
  spec.mutable_optimizer()->set_lr(1e-3);
  spec.mutable_lr_schedule()->set_warmup_steps(5);
  v1::ParallelismSpec& parallelism = *spec.mutable_parallelism();
  parallelism.set_data_parallel_replicate_degree(layout.data);
  parallelism.set_data_parallel_shard_degree(layout.shard);
  if (layout.shard > 1) parallelism.set_zero_stage(layout.zero_stage);
  parallelism.set_tensor_parallel_degree(layout.tensor);
  parallelism.set_pipeline_parallel_degree(layout.pipe);
  parallelism.set_pipeline_parallel_schedule(layout.schedule);
  parallelism.set_context_parallel_degree(layout.context);
  if (layout.exchanges_heads) parallelism.set_context_parallel_method("all_to_all");
  if (layout.by_rows) parallelism.set_sequence_parallel(true);
  ApplyDefaults(&spec);
  return spec;
}

void WriteSmallDataset(const std::string& prefix, int document_tokens) {
  PosixFileSystem files;
  auto writer = IndexedDatasetWriter::Create(files, {.prefix = prefix});
  TROUPE_CHECK_OK(writer.status());
  uint32_t state = 1;
  const int documents = 40 * 250 / document_tokens;
  for (int document = 0; document < documents; ++document) {
    std::vector<int32_t> tokens;
    int32_t token = document % 259;
    const int length = document_tokens == 250 ? 250 : 1 + (document * 7) % (2 * document_tokens);
    for (int i = 0; i < length; ++i) {
      state = state * 1664525u + 1013904223u;
      // Mostly a sequence that can be learnt, with occasional jumps.
      token = (state >> 24) < 40 ? static_cast<int32_t>((state >> 8) % 259) : (token * 7 + 3) % 259;
      tokens.push_back(token);
    }
    TROUPE_CHECK_OK((*writer)->Append(tokens));
    TROUPE_CHECK_OK((*writer)->EndDocument());
  }
  TROUPE_CHECK_OK((*writer)->Finish());
}

TrainResult Train(const v1::JobSpec& stated, const TrainOptions& options) {
  v1::JobSpec spec = stated;
  ApplyDefaults(&spec);
  StatusOr<v1::Plan> plan = MakeUnplacedPlan(spec);
  TROUPE_CHECK_OK(plan.status());
  plan->set_control_lag_steps(static_cast<int32_t>(options.control_lag_steps));
  if (!options.interleave_pairs) plan->mutable_schedule()->set_interleaves_pairs(false);
  const int ranks = plan->ranks_size();
  LoopbackCluster cluster(ranks, {.hang_limit = std::chrono::seconds(20), .ranks_on_host = ranks},
                          options.message_delay);
  Shared shared{.spec = spec,
                .options = options,
                .plan = *std::move(plan),
                .cluster = cluster,
                .files = {},
                .mutex = {},
                .shards = {}};
  TrainResult result;
  result.steps.resize(ranks);
  result.statuses.resize(ranks);
  result.prepares.resize(ranks);
  result.acted_after.resize(ranks);
  result.communication.resize(ranks);
  cluster.Run([&](int rank) {
    result.statuses[rank] = TrainRank(shared, rank, &result.steps[rank], &result.acted_after[rank],
                                      &result.prepares[rank], &result.communication[rank]);
  });
  if (!options.save_path.empty()) {
    v1::CheckpointManifest manifest;
    manifest.set_format_version(kManifestFormatVersion);
    manifest.set_job("jobs/small");
    manifest.set_attempt(1);
    manifest.set_group_epoch(1);
    manifest.mutable_state()->set_step(result.steps[0].back().step);
    manifest.mutable_state()->set_seed(spec.training().seed());
    *manifest.mutable_layout() = shared.plan.mesh();
    *manifest.mutable_samples() = shared.plan.samples();
    if (shared.plan.has_trained_parameters()) {
      const auto base = OpenBase({shared.files, shared.files}, spec);
      TROUPE_CHECK_OK(base.status());
      *manifest.mutable_base() = base->identity();
    }
    google::protobuf::util::JsonPrintOptions json;
    json.preserve_proto_field_names = true;
    TROUPE_CHECK(
        google::protobuf::util::MessageToJsonString(spec, manifest.mutable_job_spec_json(), json)
            .ok());
    for (v1::ShardFile& shard : shared.shards) *manifest.add_shards() = std::move(shard);
    TROUPE_CHECK_OK(WriteManifest(shared.files, options.save_path, manifest).status());
  }
  return result;
}

}  // namespace troupe
