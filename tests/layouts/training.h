// Trains a job with its ranks as threads of this process over loopback: the full planner, stage
// programs, kernels, collectives and executor, without any daemon.
#ifndef TROUPE_TESTS_LAYOUTS_TRAINING_H_
#define TROUPE_TESTS_LAYOUTS_TRAINING_H_

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/testing/test_extent.h"
#include "collective/statistics.h"
#include "kernels/backend/backend.h"
#include "troupe/v1/job.pb.h"
#include "worker/executor/executor.h"

namespace troupe {

struct Layout {
  int data = 1;
  int tensor = 1;
  int pipe = 1;
  int shard = 1;
  int zero_stage = 1;  // for shard > 1
  const char* schedule = "1F1B";
  int context = 1;
  bool exchanges_heads = false;  // context_parallel_method: all_to_all
  bool by_rows = false;          // sequence parallelism
};

// Returns a job with hidden size 64, 4 heads of size 16 with 4 key-value heads, FFN width 96,
// vocabulary 259, four blocks, 16 tokens per sample, and 12 samples per step in microbatches of
// one. Degrees 1, 2, 3 and 4 satisfy all divisibility rules, and 259 is split unevenly.
v1::JobSpec SmallJob(const Layout& layout, const std::string& data_prefix, int64_t steps);

// Writes PREFIX.bin and PREFIX.idx with a stream that can be learnt, identical on every call.
// Documents have 250 tokens, or about `document_tokens`.
void WriteSmallDataset(const std::string& prefix, int document_tokens = 250);

struct TrainOptions {
  // Number of steps to run, from the restored one.
  int64_t steps = kInstrumented ? 6 : 20;
  std::string restore_path;  // empty: start from the seed
  std::string save_path;     // empty: no checkpoint; else written after the last step
  // Makes each rank's backend; null: one thread of the CPU.
  std::function<StatusOr<std::unique_ptr<kernels::Backend>>(int rank)> make_backend;
  int64_t control_lag_steps = 0;  // as in the plan
  bool overlap = true;            // otherwise every collective is waited for where it starts
  bool interleave_pairs = true;   // otherwise overlapped pairs run one action after the other
  Duration message_delay{};       // delay of each message (collective/loopback)
  // Returns the inputs that a rank knows before the update of a step, including a proposed ticket
  // end; null: none. worker/executor/step_order.h defines the reaction to a stop or a requested
  // checkpoint.
  std::function<ControlInputs(int rank, int64_t step)> inputs;
  // Called on each rank's thread before the update of each step.
  std::function<void(int rank, Executor& executor)> before_update;
  // Called on each rank's thread after each completed step.
  std::function<void(int rank, Executor& executor, const StepResult& result)> after_step;
  // Called on each rank's thread before its first step.
  std::function<void(int rank, Executor& executor)> before_steps;
  // Called on each rank's thread after its last step.
  std::function<void(int rank, Executor& executor)> after_steps;
  // Called on each rank's thread after a failure.
  std::function<void(int rank, Executor& executor)> after_failure;
  // Gives a rank a job that differs from the others'.
  std::function<void(int rank, v1::JobSpec* spec)> mislead;
};

struct TrainResult {
  // For each rank: its steps up to its end, and the error that ended it.
  std::vector<std::vector<StepResult>> steps;
  std::vector<Status> statuses;
  std::vector<int64_t> prepares;  // calls of Backend::Prepare
  // For each rank: the time of its collectives in all steps, by purpose.
  std::vector<std::array<PurposeSeconds, kPurposes>> communication;
  // For each rank: the steps after which it stopped, or would have saved on request.
  std::vector<std::vector<int64_t>> acted_after;
};

// Trains `stated` after completing it with the defaults that follow from keys set since it was last
// completed, such as a validation fraction.
TrainResult Train(const v1::JobSpec& stated, const TrainOptions& options);

}  // namespace troupe

#endif  // TROUPE_TESTS_LAYOUTS_TRAINING_H_
