// Runs the steps of one rank: executes the plan's actions on a prepared stage program.
//
// Protocol:
//   1. Make: takes program, memory and communicators; sends nothing.
//   2. The caller connects the network.
//   3. Start: compares digests.
//   4. The caller loads initial weights or a checkpoint (worker/executor/shards.h), then calls
//      FinishLoading.
//   5. SubmitGradients, SubmitUpdate and Complete, once each per step, in the order of
//      worker/executor/step_order.h. Between the first two the caller may wait for whatever must
//      precede a change of the parameters, and learn the newest control inputs.
// The program is prepared exactly once, whatever the number of steps.
//
// Invariants:
// - applied_step() <= submitted_step() <= applied_step() + control_lag_steps + 1, which
//   SubmitGradients and Complete check. flights_ has as many entries as steps can be in flight, so
//   no two of them share one.
// - At most one step has its gradients submitted but not its update: submitted_step() + 1, while
//   has_gradients_ is true.
//
// After any error except a refused batch of data the executor can only be destroyed, because
// buffers may hold half a step. Thread-safety: only the step thread calls it; CurrentOperation may
// be called from any thread.
#ifndef TROUPE_WORKER_EXECUTOR_EXECUTOR_H_
#define TROUPE_WORKER_EXECUTOR_EXECUTOR_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "collective/network.h"
#include "data/dataset.h"
#include "kernels/backend/backend.h"
#include "model/program/control_word.h"
#include "model/program/memory_plan.h"
#include "model/program/program.h"
#include "plan/validate/batch.h"
#include "troupe/v1/job.pb.h"
#include "worker/executor/action_runs.h"
#include "worker/executor/batch_reader.h"
#include "worker/executor/chunk_inputs.h"
#include "worker/executor/communicators.h"
#include "worker/executor/learning_rate.h"
#include "worker/executor/rank_action.h"
#include "worker/executor/step_progress.h"
#include "worker/executor/step_result.h"
#include "worker/executor/step_trace.h"

namespace troupe {

// The work of one rank, apart from its program.
struct ExecutorOptions {
  int rank = 0;
  GroupMesh mesh;
  std::vector<int> pipe_rank_of_chunk;  // covers the whole model
  ActionList actions;                   // this rank's actions
  BatchGeometry batch;
  int64_t steps = 0;  // number of the last step
  LearningRateSchedule learning_rate;
  v1::OnNonfinite on_nonfinite = v1::ON_NONFINITE_FAIL;
  int64_t validation_interval = 0;  // in steps, also after the first; 0: only after the last step
  int64_t validation_samples = 0;   // at most, spread over the held-out samples; 0: none
  std::string block_letters;        // letters of the whole model's blocks, in order
  int64_t norms_interval = 0;       // steps between block norms; 0: none
  int64_t control_lag_steps = 0;    // steps that may be submitted before one completes
};

// The state of this rank when a step's control word is made.
struct ControlInputs {
  bool stop = false;
  int64_t ticket_end = std::numeric_limits<int32_t>::max();
  int64_t request_attempt = 0;  // highest requested checkpoint attempt that this rank knows
  bool intent_known = false;    // the intent of a checkpoint due control_lag_steps after this step
};

class Executor {
 public:
  // Makes communicators in `network` and prepares `program`. `program`, `memory`, `backend`,
  // `network`, `dataset` and `progress` outlive the executor. Returns INVALID_ARGUMENT if actions
  // and memory plan disagree.
  static StatusOr<std::unique_ptr<Executor>> Make(ExecutorOptions options,
                                                  const model::Program& program,
                                                  const model::MemoryPlan& memory,
                                                  kernels::Backend& backend,
                                                  CollectiveNetwork& network,
                                                  const Dataset& dataset, StepProgress* progress);
  ~Executor();

  // Compares the collectives that each group will run. Collective. REQUIRES: the network is
  // connected.
  Status Start();

  // Makes compute copies of the parameters. Call once parameters (and, from a checkpoint, optimizer
  // states) are loaded. `applied_step` is the step after which they were saved, 0 for initial
  // weights.
  Status FinishLoading(int64_t applied_step);

  // Returns the minimum of each number over all ranks. Collective. Ranks call it on their ticket
  // ends once the last agreed end is reached, so that no rank begins a step for which another has
  // no ticket. REQUIRES: no step is in flight.
  StatusOr<std::vector<int64_t>> AgreeOnLeast(std::span<const int64_t> own);

  // Enqueues the gradients of step submitted_step() + 1, summed over ranks; on an asynchronous
  // device it returns before they are computed. Parameters and optimizer states stay unchanged.
  // REQUIRES: at most control_lag_steps steps are in flight and none of them drains the pipeline
  // (DrainsAfter). Errors of collectives are UNAVAILABLE and the like, errors of data
  // INVALID_ARGUMENT.
  Status SubmitGradients();

  // Enqueues the update of that step, which then is submitted_step(). `inputs` is this rank's part
  // of the control word. REQUIRES: SubmitGradients was the last of these two calls.
  Status SubmitUpdate(const ControlInputs& inputs);

  // Waits for step applied_step() + 1 and for no later step. REQUIRES: it is in flight. With
  // on_nonfinite = fail, returns OUT_OF_RANGE, identical on all ranks, if a number is not finite;
  // it names step, rank, tensor and, if running the step again finds it, the operation. Then
  // neither this step nor any step submitted after it is applied. Errors of collectives are
  // UNAVAILABLE and the like.
  StatusOr<StepResult> Complete();

  // Whether `step` must be completed before the next step is submitted, because validation and
  // block norms read the state after it.
  bool DrainsAfter(int64_t step) const { return ValidatesAfter(step) || MeasuresNormsOf(step); }

  // Returns the mean loss over the held-out samples with the current weights; absent if there are
  // no such samples. REQUIRES: no step is in flight.
  StatusOr<std::optional<double>> Validate();

  // From now on `trace` records the steps; null: none. It outlives the executor.
  void set_trace(StepTrace* trace) { trace_ = trace; }

  // The last step that is known to have updated the parameters (or to have been skipped).
  int64_t applied_step() const { return applied_step_; }
  // The last step that was submitted. Those after applied_step() are in flight.
  int64_t submitted_step() const { return submitted_step_; }

  kernels::Executable& executable() { return *executable_; }
  const model::Program& program() const { return program_; }
  const ExecutorOptions& options() const { return options_; }
  const char* CurrentOperation() const { return executable_->CurrentOperation(); }

 private:
  // A submitted step.
  struct Flight {
    StepResult result;  // the fields that the host knows
    std::chrono::steady_clock::time_point begin;
    kernels::DeviceCalls calls_before;
    // Delayed read of its control word, then of reported_totals_.
    std::unique_ptr<kernels::DelayedRead> results;
  };

  Executor(ExecutorOptions options, const model::Program& program, const Dataset& dataset,
           StepProgress* progress);

  void Enter(Phase phase, int chunk = 0, int microbatch = 0);
  Flight& FlightOf(int64_t step) { return flights_[static_cast<size_t>(step) % flights_.size()]; }
  Status MakeFlights();
  // Returns the device's stalls since the last completed step. REQUIRES: the read of `flight` is
  // finished.
  std::optional<kernels::DeviceStalls> ConsumeStalls(const Flight& flight);
  // Excludes the stalls of work that the device has done between steps.
  Status SkipStalls(Flight* flight);
  bool ValidatesAfter(int64_t step) const;
  bool MeasuresNormsOf(int64_t step) const;
  // Describes where a number is not finite. Collective, after the same step on all ranks. Runs that
  // step again if it is going to end the job and the device can inspect operations. `culprit` is
  // the rank in the control word; -1: none.
  StatusOr<std::string> FindNonfinite(int64_t step, int culprit);
  // Computes the gradients of a step again and reports each operation to `observer`. `reduces`:
  // also sums them over ranks.
  Status RunAgain(int64_t step, bool reduces, kernels::OperationObserver* observer);
  // `reduces`: the caller runs RunReduce next, to sum the gradients over ranks.
  Status RunActions(int64_t step, const SampleBatch* batch, bool reduces);
  Status RunReduce();
  // Runs an action from its receive to its send.
  Status RunAction(const RankAction& action, const MicrobatchSamples& samples,
                   const kernels::RunOptions& run);
  // Receives the action's input, so that RunPiece finds it in its buffer.
  Status BeginAction(const RankAction& action, const MicrobatchSamples& samples, bool evaluates);
  Status RunPiece(const RankAction& action, const kernels::RunOptions& run);
  // Sends or copies the action's result to the neighbouring chunk.
  Status EndAction(const RankAction& action);
  Status Receive(const RankAction& action, model::ValueId value, Communicator& link);
  // Waits for the send of a boundary value; does nothing if the chunk has no such value.
  Status WaitSend(model::ValueId value, int buffer);
  // Waits for the sends of all boundary values.
  Status WaitSends();
  // This rank's part of the control word of the step whose gradients were submitted last.
  std::array<double, model::kControlLanes> ControlWordOf(const ControlInputs& inputs) const;
  Status ZeroLossTotals();
  Status WriteLearningRate(double learning_rate);
  // This rank's share of {Σ weight·nll, Σ weight}; 0 if another rank counts them.
  StatusOr<std::array<double, 2>> LossTotals();
  bool counts_loss() const;
  bool counts_samples() const;
  int data_rank() const { return options_.mesh.mesh.DataRankOf(options_.rank); }

  const ExecutorOptions options_;
  const model::Program& program_;
  const Dataset& dataset_;
  StepProgress* const progress_;
  StepTrace* trace_ = nullptr;
  std::optional<Communicators> communicators_;
  std::unique_ptr<kernels::Executable> executable_;
  std::unique_ptr<BatchReader> reader_;  // null on ranks that need no rows
  ChunkInputs inputs_;
  std::vector<ActionRun> runs_;  // runs of a step
  std::optional<SampleBatch> validation_batch_;
  double receive_wait_seconds_ = 0;
  const SampleBatch* batch_ = nullptr;           // batch of the last submitted step
  std::vector<model::ValueId> reported_totals_;  // ReportedRouterTotals
  std::vector<Flight> flights_;
  std::chrono::steady_clock::time_point completed_at_;
  kernels::DeviceStalls stalls_;  // up to the last completed step
  bool has_gradients_ = false;    // gradients of step submitted_step_ + 1
  int64_t submitted_step_ = 0;
  int64_t applied_step_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_EXECUTOR_H_
