// Saves a rank's part of checkpoints, either between two steps (async_mode disabled) or in the
// background (async): the snapshot is copied while the next step computes, and only that step's
// update waits for the copy, which is then hashed, written and voted for in the background.
//
// Invariants:
// - One save is in flight at a time. Every accepted attempt is answered by exactly one message,
//   ShardDone or ShardFailed, unless Stop came first.
// - Async: a save goes through the stages idle, copying, writing, idle, also after Stop and after
//   an error, so that one thread at a time uses the snapshot.
// - A vote is sent only for a shard that is durable (checkpoint_saver_test.cc:
//   VotesForWhatIsOnTheDiskInBothModes).
//
// Thread-safety: only the step thread calls StartSave, WaitForCopy and busy; any thread may call
// Stop, attempt_in_flight and WaitUntilIdle.
#ifndef TROUPE_WORKER_RANK_CHECKPOINT_SAVER_H_
#define TROUPE_WORKER_RANK_CHECKPOINT_SAVER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/write/shard_writer.h"
#include "checkpoint/write/snapshot.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

// The cause that ShardFailed states of a write that failed; empty: any other cause. Only a write
// that found no room on the disk is FOLDER_FULL: memory that cannot be allocated is a fault of this
// host.
std::string CauseOfFailedWrite(const Status& status);

struct CheckpointSaverOptions {
  FileSystem* files = nullptr;
  const Clock* clock = nullptr;
  bool async = false;
  int rank = 0;
  // The common fields of all votes: job, group epoch, rank, incarnation and, in its state, the
  // seed.
  v1::ShardDone vote;
  size_t vote_bytes_max = kCheckpointMessageBytesMax;
  int64_t samples_per_step = 0;
  Snapshot::Pin pin;  // for devices with memory of their own
  std::function<void(v1::WorkerMessage)> send;
};

class CheckpointSaver {
 public:
  // `tensors` are what the rank writes; their memory outlives the object. Returns
  // RESOURCE_EXHAUSTED if a snapshot does not fit into memory.
  static StatusOr<std::unique_ptr<CheckpointSaver>> Make(CheckpointSaverOptions options,
                                                         std::vector<ShardTensor> tensors);
  // Calls Stop and waits for the save in flight.
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // Saves the state after `step`; first waits for the save in flight. Async: returns once the
  // snapshot has begun, and the state must not change until WaitForCopy returns. Disabled: returns
  // once the part is durable or has failed. Has no effect after Stop.
  void StartSave(const v1::CheckpointIntent& intent, int64_t step);

  // Returns when the state may change: the snapshot has been copied, or Stop was called.
  void WaitForCopy();

  // Whether a save is in flight; another one would have to wait for it.
  bool busy() const { return attempt_in_flight() != 0; }
  // The attempt of the save in flight; 0: none.
  int64_t attempt_in_flight() const { return attempt_in_flight_.load(std::memory_order_acquire); }

  // Ends the save in flight soon and without a vote.
  void Stop();

  // Waits for at most `limit` until no save is in flight; returns whether that is so.
  bool WaitUntilIdle(Duration limit);

 private:
  struct Save {
    v1::CheckpointIntent intent;
    int64_t step = 0;
    MonotonicTime taken;
    Duration stall{};  // time for which it blocked the step thread
  };
  enum class Stage { kIdle, kCopying, kWriting };

  explicit CheckpointSaver(CheckpointSaverOptions options) : options_(std::move(options)) {}

  void CopyLoop();
  void WriteLoop();
  void SaveBetweenSteps(const Save& save);
  // Sends the outcome, unless stopped.
  void Answer(const Save& save, const StatusOr<v1::ShardFile>& shard, WriteMethod method);
  // REQUIRES: mutex_ is held.
  void EnterStage(Stage stage);

  const CheckpointSaverOptions options_;
  std::vector<ShardTensor> tensors_;  // used only if disabled
  std::optional<Snapshot> snapshot_;  // used only if async
  std::atomic<int64_t> attempt_in_flight_{0};
  std::atomic<bool> stop_{false};
  bool method_logged_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  Stage stage_ = Stage::kIdle;
  Save save_;                                     // the save that `stage_` belongs to
  Status copied_;                                 // result of the copy
  std::optional<MonotonicTime> copy_wait_begin_;  // since when the step thread waits
  std::thread copier_;
  std::thread writer_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_CHECKPOINT_SAVER_H_
