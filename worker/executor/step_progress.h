// Where a rank's step thread is, in memory that outlives the rank when it is shared with the
// daemon: the last operation of a process that was killed can still be told.
//
// Written by the step thread with relaxed atomics, read by anyone. Plain memory: may lie in a
// mapping shared between processes; zero-filled it means "idle".
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
  kSaving,   // a checkpoint is written in the background: of traces alone
  kCollect,  // waits for what the device tells of a step, where steps are handed over ahead
};

struct StepProgress {
  std::atomic<int64_t> step{0};
  std::atomic<Phase> phase{Phase::kIdle};
  std::atomic<int32_t> chunk{0};
  std::atomic<int32_t> microbatch{0};
  // Filled by a signal handler with the kernel's name, zero-terminated.
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

// "step 12: forward of chunk 0, microbatch 3 (block1.attention.qkv)".
std::string Describe(const StepProgress& progress);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_STEP_PROGRESS_H_
