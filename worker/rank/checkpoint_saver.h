// Saves a rank's part of checkpoints: between two steps (async_mode disabled), or beside them
// (async): then a snapshot is copied while the next step computes, which only its update waits for,
// and the copy is hashed, written and voted for in the background.
//
// One save is in flight at a time. Every attempt that is taken is answered by exactly one message,
// ShardDone or ShardFailed, unless Stop came first.
//
// Thread-safety: Take, WaitForCopy and busy belong to the step thread; Stop, attempt_in_flight and
// WaitUntilIdle may be called from any.
#ifndef TROUPE_WORKER_RANK_CHECKPOINT_SAVER_H_
#define TROUPE_WORKER_RANK_CHECKPOINT_SAVER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/manifest.h"
#include "checkpoint/shard_writer.h"
#include "checkpoint/snapshot.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

struct CheckpointSaverOptions {
  FileSystem* files = nullptr;
  const Clock* clock = nullptr;
  bool async = false;
  int rank = 0;
  // The part of a vote that is the same for all: job, group epoch, rank, incarnation and, in its
  // state, the seed.
  v1::ShardDone vote;
  size_t vote_bytes_max = kCheckpointMessageBytesMax;
  int64_t samples_per_step = 0;
  Snapshot::Pin pin;       // of devices with memory of their own
  std::function<void(v1::WorkerMessage)> send;
};

class CheckpointSaver {
 public:
  // `tensors`: what the rank writes; their memory outlives the object. RESOURCE_EXHAUSTED where a
  // snapshot does not fit into memory.
  static StatusOr<std::unique_ptr<CheckpointSaver>> Make(CheckpointSaverOptions options,
                                                         std::vector<ShardTensor> tensors);
  // Stops, and waits for what is under way.
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // Saves the state as it is after `step`. Waits for the save in flight; async: returns once the
  // snapshot has begun, and the state must stay as it is until WaitForCopy; disabled: returns once
  // the part is durable or has failed. No effect once stopped.
  void Take(const v1::CheckpointIntent& intent, int64_t step);

  // Returns when the state may change: the snapshot has been copied, or Stop came.
  void WaitForCopy();

  // A save is in flight: another one would have to wait.
  bool busy() const { return attempt_in_flight() != 0; }
  // 0: none.
  int64_t attempt_in_flight() const { return attempt_in_flight_.load(std::memory_order_acquire); }

  // Ends what is under way, soon, without a vote.
  void Stop();

  // Whether nothing is under way any more, after waiting for it at most so long.
  bool WaitUntilIdle(Duration limit);

 private:
  struct Save {
    v1::CheckpointIntent intent;
    int64_t step = 0;
    MonotonicTime taken;
    Duration stall{};  // how long the step thread stood still for it
  };
  enum class Stage { kIdle, kCopying, kWriting };

  explicit CheckpointSaver(CheckpointSaverOptions options) : options_(std::move(options)) {}

  void CopyLoop();
  void WriteLoop();
  void TakeBetweenSteps(const Save& save);
  // Tells the outcome, unless stopped.
  void Answer(const Save& save, const StatusOr<v1::ShardFile>& shard, WriteMethod method);
  // REQUIRES: mutex_ is held.
  void EnterStage(Stage stage);

  const CheckpointSaverOptions options_;
  std::vector<ShardTensor> tensors_;  // disabled alone
  std::optional<Snapshot> snapshot_;  // async alone
  std::atomic<int64_t> attempt_in_flight_{0};
  std::atomic<bool> stop_{false};
  bool method_logged_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  Stage stage_ = Stage::kIdle;
  Save save_;                                     // of the stage
  Status copied_;                                 // how the copy went
  std::optional<MonotonicTime> copy_wait_begin_;  // the step thread waits since then
  std::thread copier_;
  std::thread writer_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_CHECKPOINT_SAVER_H_
