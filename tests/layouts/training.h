// Trains a job with its ranks as threads of this process over loopback: the whole of planner, stage
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
#include "collective/statistics.h"
#include "kernels/backend.h"
#include "troupe/v1/job.pb.h"
#include "worker/executor/executor.h"

namespace troupe {

struct Layout {
  int data = 1;
  int tensor = 1;
  int pipe = 1;
  int shard = 1;
  int zero_stage = 1;  // of shard > 1
  const char* schedule = "1F1B";
  int context = 1;
  bool exchanges_heads = false;  // context_parallel_method: all_to_all
  bool by_rows = false;          // sequence parallelism
};

// Hidden 64, 4 heads of 16 with 4 key-value heads, ffn 96, vocabulary 259, four blocks, 16 tokens a
// sample, 12 samples a step in microbatches of one: every degree of 1, 2, 3 and 4 divides what it
// must, and 259 is cut unevenly.
v1::JobSpec SmallJob(const Layout& layout, const std::string& data_prefix, int64_t steps);

// Writes PREFIX.bin and PREFIX.idx of a stream with structure to learn, the same whenever it is
// called. Of documents of 250 tokens, or of about `document_tokens`.
void WriteSmallDataset(const std::string& prefix, int document_tokens = 250);

struct TrainOptions {
  int64_t steps = 20;        // how many to run, from the restored one on
  std::string restore_path;  // empty: from the seed
  std::string save_path;     // empty: no checkpoint; else written after the last step
  // Each rank's; null: one thread of the CPU.
  std::function<StatusOr<std::unique_ptr<kernels::Backend>>(int rank)> make_backend;
  int64_t control_lag_steps = 0;  // the plan's
  bool overlap = true;       // else every collective is waited for where it is begun
  bool interleave_pairs = true;  // else the actions of overlapped pairs run one after the other
  Duration message_delay{};      // of the network (collective/loopback)
  // What a rank knows before the update of a step, where a ticket's end is agreed on too; null: nothing. A stop or an
  // asked-for checkpoint is acted on as worker/executor/step_order.h says.
  std::function<ControlInputs(int rank, int64_t step)> inputs;
  // Called on each rank's thread before the update of each step.
  std::function<void(int rank, Executor& executor)> before_update;
  // And for each step that was collected.
  std::function<void(int rank, Executor& executor, const StepResult& result)> after_step;
  // Called on each rank's thread before its first step.
  std::function<void(int rank, Executor& executor)> before_steps;
  // And after its last one.
  std::function<void(int rank, Executor& executor)> after_steps;
  // Where one has failed.
  std::function<void(int rank, Executor& executor)> after_failure;
  // Makes a rank believe in another job than the rest.
  std::function<void(int rank, v1::JobSpec* spec)> mislead;
};

struct TrainResult {
  // Of each rank: its steps up to its end, and the error that ended it.
  std::vector<std::vector<StepResult>> steps;
  std::vector<Status> statuses;
  std::vector<int64_t> prepares;  // calls of Backend::Prepare
  // Of each rank: what its collectives took in all steps, by purpose.
  std::vector<std::array<PurposeSeconds, kPurposes>> communication;
  // The steps after which it stopped, or would have saved because it was asked to.
  std::vector<std::vector<int64_t>> acted_after;
};

// Trains `stated`, completed by the defaults of what was stated since it was last completed: that a
// part is held out for validation, say.
TrainResult Train(const v1::JobSpec& stated, const TrainOptions& options);

}  // namespace troupe

#endif  // TROUPE_TESTS_LAYOUTS_TRAINING_H_
