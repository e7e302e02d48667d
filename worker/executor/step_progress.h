// The current operation of a rank's step thread, in memory that outlives the rank if it is shared
// with the daemon: the last operation of a killed process can still be reported.
//
// The step thread writes it with relaxed atomics; any thread may read it. Plain memory: it may be
// in a mapping shared between processes, and zeros mean "idle".
#ifndef TROUPE_WORKER_EXECUTOR_STEP_PROGRESS_H_
#define TROUPE_WORKER_EXECUTOR_STEP_PROGRESS_H_

#include <atomic>
#include <cstdint>
#include <string>

namespace troupe {

enum class Phase : int32_t {
  kIdle,
  kBuild,    // stage program, memory
  kConnect,  // transport to the other ranks, digests
  kLoad,     // initial weights or checkpoint
  kWaitTicket,
  kReadBatch,
  kReceive,  // from a neighbouring stage
  kForward,
  kBackward,
  kInputGradient,
  kWeightGradient,
  kWaitSends,
  kReduce,
  kUpdate,
  kValidate,
  kCheckpoint,
  kUnshard,
  kSaving,      // a checkpoint is written in the background; only in traces
  kWaitResult,  // for a step's results if steps are submitted ahead
};

struct StepProgress {
  std::atomic<int64_t> step{0};
  std::atomic<Phase> phase{Phase::kIdle};
  std::atomic<int32_t> chunk{0};
  std::atomic<int32_t> microbatch{0};
  // A signal handler writes the kernel's name here, zero-terminated.
  char operation[96] = {};

  void Enter(Phase next) { phase.store(next, std::memory_order_relaxed); }
  void Enter(Phase next, int next_chunk, int next_microbatch) {
    chunk.store(next_chunk, std::memory_order_relaxed);
    microbatch.store(next_microbatch, std::memory_order_relaxed);
    phase.store(next, std::memory_order_relaxed);
  }
};
static_assert(std::atomic<int64_t>::is_always_lock_free &&
              std::atomic<int32_t>::is_always_lock_free);

// Returns "step 12: forward of chunk 0, microbatch 3 (block1.attention.qkv)".
std::string Describe(const StepProgress& progress);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_STEP_PROGRESS_H_
