// Runs the steps of one rank: walks the plan's actions over a prepared stage program.
//
// Life: Make (program, memory, communicators; nothing is sent), the caller connects the network,
// Start (digests compared), initial weights or a checkpoint (worker/executor/shards.h), then
// Submit and Collect once a step each, in the order that worker/executor/step_order.h says. The program
// is prepared exactly once, whatever the number of steps.
//
// After any error but a refused batch of data the executor is only fit to be destroyed: buffers may
// hold half a step. Thread-safety: one thread, the step thread; CurrentOperation may be called from
// any.
#ifndef TROUPE_WORKER_EXECUTOR_EXECUTOR_H_
#define TROUPE_WORKER_EXECUTOR_EXECUTOR_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <span>
#include <vector>

#include "base/status.h"
#include "collective/network.h"
#include "data/dataset.h"
#include "kernels/backend.h"
#include "model/program/control_word.h"
#include "model/program/memory_plan.h"
#include "model/program/program.h"
#include "plan/batch.h"
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

enum class OnNonfinite { kFail, kSkipStep };

// What one rank is to do, apart from its program.
struct ExecutorOptions {
  int rank = 0;
  GroupMesh mesh;
  std::vector<int> pipe_rank_of_chunk;  // of the whole model
  ActionList actions;                   // this rank's
  BatchGeometry batch;
  int64_t steps = 0;  // the last one
  LearningRateSchedule learning_rate;
  OnNonfinite on_nonfinite = OnNonfinite::kFail;
  int64_t validation_interval = 0;  // steps, and after the first; 0: only after the last step
  int64_t validation_samples = 0;   // at most so many, spread over what is held out; 0: none
  std::string block_letters;        // of the whole model's blocks, in order
  int64_t norms_interval = 0;       // steps between norms of blocks; 0: none
  int64_t control_lag_steps = 0;    // steps that may be handed over before one is collected
};

// What this rank knows when a step's control word is made.
struct ControlInputs {
  bool stop = false;
  int64_t ticket_end = std::numeric_limits<int32_t>::max();
  int64_t request_attempt = 0;  // the highest asked-for checkpoint attempt known
  bool intent_known = false;    // of a checkpoint due control_lag_steps after this step
};

// Called once all gradients are reduced, right before parameters and optimizer states change:
// returns when they may, and may bring what the rank knows up to date. An error ends the step,
// which is not applied.
using BeforeUpdate = std::function<Status(ControlInputs&)>;

class Executor {
 public:
  // Makes communicators in `network` and prepares `program`. `program`, `memory`, `backend`,
  // `network`, `dataset` and `progress` outlive the executor. INVALID_ARGUMENT where actions and
  // memory plan disagree.
  static StatusOr<std::unique_ptr<Executor>> Make(ExecutorOptions options,
                                                  const model::Program& program,
                                                  const model::MemoryPlan& memory,
                                                  kernels::Backend& backend,
                                                  CollectiveNetwork& network,
                                                  const Dataset& dataset, StepProgress* progress);
  ~Executor();

  // Compares what each group is about to do. REQUIRES: the network is connected.
  Status Start();

  // To be called once parameters (and, after a checkpoint, optimizer states) are in place: makes
  // compute copies. `applied_step`: the step after which they were taken, 0 for initial weights.
  Status FinishLoading(int64_t applied_step);

  // The smallest of each number over all ranks, which call it alike: of ticket ends where the last agreed
  // one has been reached, so that no rank begins a step for which another has no ticket. REQUIRES: no step
  // is on its way.
  StatusOr<std::vector<int64_t>> AgreeOnLeast(std::span<const int64_t> own);

  // Hands step submitted_step() + 1 to the device and returns, where the device lets it, before that has
  // done it. REQUIRES: no more than control_lag_steps are on their way, none of which settles.
  // UNAVAILABLE and the like come from collectives, INVALID_ARGUMENT from data.
  Status Submit(ControlInputs inputs, const BeforeUpdate& before_update = nullptr);

  // Waits for step applied_step() + 1 and for none after it. REQUIRES: it is on its way. OUT_OF_RANGE names
  // step, rank, tensor and, where one can be found by running the step again, the operation of a number
  // that is not finite, alike on all ranks (on_nonfinite = fail; neither the step nor one that was handed
  // over after it is applied); UNAVAILABLE and the like come from collectives.
  StatusOr<StepResult> Collect();

  // Submit and Collect. REQUIRES: no step is on its way.
  StatusOr<StepResult> RunStep(ControlInputs inputs, const BeforeUpdate& before_update = nullptr);

  // Whether `step` must be collected before another is handed over: validation and norms are of the state
  // after it.
  bool Settles(int64_t step) const { return ValidatesAfter(step) || MeasuresNormsOf(step); }

  // Mean loss over the held-out samples with the present weights; absent where there are none. REQUIRES: no
  // step is on its way.
  StatusOr<std::optional<double>> Validate();

  // What is to remember the steps from now on; null: nothing. It outlives the executor.
  void set_trace(StepTrace* trace) { trace_ = trace; }

  // The last step whose update is known to be in the parameters (or to have been skipped).
  int64_t applied_step() const { return applied_step_; }
  // The last step that was handed over: those after applied_step() are on their way.
  int64_t submitted_step() const { return submitted_step_; }

  kernels::Executable& executable() { return *executable_; }
  const model::Program& program() const { return program_; }
  const ExecutorOptions& options() const { return options_; }
  const char* CurrentOperation() const { return executable_->CurrentOperation(); }

 private:
  // A step that was handed over.
  struct Flight {
    StepResult result;  // what the host knows of it
    std::chrono::steady_clock::time_point begin;
    // Its control word, then told_totals_.
    std::unique_ptr<kernels::DelayedRead> told;
  };

  Executor(ExecutorOptions options, const model::Program& program, const Dataset& dataset,
           StepProgress* progress);

  void Enter(Phase phase, int chunk = 0, int microbatch = 0);
  Flight& FlightOf(int64_t step) {
    return flights_[static_cast<size_t>(step) % flights_.size()];
  }
  Status MakeFlights();
  // The device's stalls since the last step that was collected. REQUIRES: the read of `flight` is
  // finished.
  std::optional<kernels::DeviceStalls> TakeStalls(const Flight& flight);
  // Leaves out the stalls of what the device has done between steps.
  Status SkipStalls(Flight* flight);
  bool ValidatesAfter(int64_t step) const;
  bool MeasuresNormsOf(int64_t step) const;
  // What is not finite, where; all ranks call it after the same step. Runs that step again where it is
  // to end the job. `culprit`: as the control word has it; -1: none.
  StatusOr<std::string> FindNonfinite(int64_t step, int culprit);
  // The gradients of a step once more, told to `observer`. `reduces`: summed over ranks too.
  Status RunAgain(int64_t step, bool reduces, kernels::OperationObserver* observer);
  // `reduces`: gradients are to be summed, and Reduce comes next.
  Status RunActions(int64_t step, const SampleBatch* batch, bool reduces);
  Status RunReduce();
  // Runs an action whole.
  Status RunAction(const RankAction& action, const MicrobatchSamples& samples,
                   const kernels::RunOptions& run);
  // Receives the action's input; what is called later finds it in place.
  Status BeginAction(const RankAction& action, const MicrobatchSamples& samples, bool evaluates);
  Status RunPiece(const RankAction& action, const kernels::RunOptions& run);
  // Sends or copies the action's result to the neighbouring chunk.
  Status EndAction(const RankAction& action);
  Status Receive(const RankAction& action, model::ValueId value, Communicator& edge);
  // Of a boundary value; nothing where the chunk has none.
  Status WaitSend(model::ValueId value, int buffer);
  // Of all values.
  Status WaitSends();
  Status ZeroLossTotals();
  Status WriteLearningRate(double learning_rate);
  // This rank's share of {Σ weight·nll, Σ weight}; 0 where another rank counts them.
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
  std::vector<ActionRun> runs_;  // of a step
  std::optional<SampleBatch> validation_batch_;
  double receive_wait_seconds_ = 0;
  const SampleBatch* batch_ = nullptr;  // of the last step that was handed over
  std::vector<model::ValueId> told_totals_;  // ToldRouterTotals
  std::vector<Flight> flights_;
  std::chrono::steady_clock::time_point collected_at_;
  kernels::DeviceStalls stalls_;  // up to the last step that was collected
  int64_t submitted_step_ = 0;
  int64_t applied_step_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_EXECUTOR_H_
