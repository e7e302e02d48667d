#include "worker/rank/checkpoint_saver.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/failpoint.h"
#include "base/failure_cause.h"
#include "base/log.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/folder.h"

namespace troupe {
namespace {

// Hashing and writing yield to training: on a core shared with a busy thread they get a tenth of
// the time.
constexpr int kWriterNiceness = 10;

// Creates the attempt's directory, only in the folder that the intent identifies.
Status MakeDirectoryOf(FileSystem& files, const v1::CheckpointIntent& intent) {
  if (intent.path().empty())
    return FailedPrecondition("the checkpoint intent did not reach this rank");
  TROUPE_RETURN_IF_ERROR(CheckFolderId(files, FolderOfAttempt(intent.path()), intent.folder_id()));
  return MakeAttemptDirectory(files, intent.path());
}

void LowerPriority() {
  // On Linux this affects only the calling thread. Without the permission the writer competes at
  // normal priority.
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kWriterNiceness);
}

}  // namespace

std::string CauseOfFailedWrite(const Status& status) {
  const std::string attached = AttachedCause(status);
  return attached.empty() && SaysFolderIsFull(status) ? std::string(cause::kFolderFull) : attached;
}

StatusOr<std::unique_ptr<CheckpointSaver>> CheckpointSaver::Make(CheckpointSaverOptions options,
                                                                 std::vector<ShardTensor> tensors) {
  std::unique_ptr<CheckpointSaver> saver(new CheckpointSaver(std::move(options)));
  if (!saver->options_.async) {
    saver->tensors_ = std::move(tensors);
    return saver;
  }
  TROUPE_ASSIGN_OR_RETURN(saver->snapshot_, Snapshot::Make(saver->options_.rank, std::move(tensors),
                                                           saver->options_.pin));
  saver->copier_ = std::thread([self = saver.get()] { self->CopyLoop(); });
  saver->writer_ = std::thread([self = saver.get()] { self->WriteLoop(); });
  return saver;
}

CheckpointSaver::~CheckpointSaver() {
  Stop();
  if (copier_.joinable()) copier_.join();
  if (writer_.joinable()) writer_.join();
}

void CheckpointSaver::StartSave(const v1::CheckpointIntent& intent, int64_t step) {
  Save save{intent, step, options_.clock->Now()};
  if (!options_.async) {
    if (stop_.load()) return;
    attempt_in_flight_.store(intent.attempt(), std::memory_order_release);
    SaveBetweenSteps(save);
    std::lock_guard lock(mutex_);
    attempt_in_flight_.store(0, std::memory_order_release);
    changed_.notify_all();
    return;
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stage_ == Stage::kIdle || stop_.load(); });
  if (stop_.load()) return;
  save.stall = options_.clock->Now() - save.taken;
  save_ = std::move(save);
  attempt_in_flight_.store(intent.attempt(), std::memory_order_release);
  EnterStage(Stage::kCopying);
}

void CheckpointSaver::SaveBetweenSteps(const Save& save) {
  WriteMethod method = WriteMethod::kBuffered;
  const auto write = [&]() -> StatusOr<v1::ShardFile> {
    TROUPE_RETURN_IF_ERROR(HitFailpoint("checkpoint.snapshot"));
    TROUPE_RETURN_IF_ERROR(MakeDirectoryOf(*options_.files, save.intent));
    return WriteShard(*options_.files, save.intent.path(), options_.rank, tensors_,
                      {.stop = &stop_, .method = &method});
  };
  const StatusOr<v1::ShardFile> shard = write();
  Save done = save;
  done.stall = options_.clock->Now() - save.taken;
  Answer(done, shard, method);
}

void CheckpointSaver::WaitForCopy() {
  if (!options_.async) return;
  std::unique_lock lock(mutex_);
  if (stage_ != Stage::kCopying) return;
  copy_wait_begin_ = options_.clock->Now();
  changed_.wait(lock, [this] { return stage_ != Stage::kCopying || stop_.load(); });
  copy_wait_begin_.reset();
}

void CheckpointSaver::Stop() {
  std::lock_guard lock(mutex_);
  stop_.store(true);
  changed_.notify_all();
}

bool CheckpointSaver::WaitUntilIdle(Duration limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [this] { return !busy(); });
}

void CheckpointSaver::EnterStage(Stage stage) {
  stage_ = stage;
  changed_.notify_all();
}

void CheckpointSaver::CopyLoop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stage_ == Stage::kCopying || stop_.load(); });
    if (stage_ != Stage::kCopying) return;
    lock.unlock();
    Status copied = HitFailpoint("checkpoint.snapshot");
    if (copied.ok()) copied = snapshot_->Copy(stop_);
    lock.lock();
    if (copy_wait_begin_) save_.stall += options_.clock->Now() - *copy_wait_begin_;
    copied_ = std::move(copied);
    EnterStage(Stage::kWriting);
  }
}

void CheckpointSaver::WriteLoop() {
  LowerPriority();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] {
      return stage_ == Stage::kWriting || (stage_ == Stage::kIdle && stop_.load());
    });
    if (stage_ != Stage::kWriting) return;
    const Save save = save_;
    const Status copied = copied_;
    lock.unlock();
    WriteMethod method = WriteMethod::kBuffered;
    const auto write = [&]() -> StatusOr<v1::ShardFile> {
      TROUPE_RETURN_IF_ERROR(copied);
      TROUPE_RETURN_IF_ERROR(MakeDirectoryOf(*options_.files, save.intent));
      return snapshot_->Write(*options_.files, save.intent.path(),
                              {.stop = &stop_, .method = &method});
    };
    const StatusOr<v1::ShardFile> shard = write();
    Answer(save, shard, method);
    lock.lock();
    attempt_in_flight_.store(0, std::memory_order_release);
    EnterStage(Stage::kIdle);
  }
}

void CheckpointSaver::Answer(const Save& save, const StatusOr<v1::ShardFile>& shard,
                             WriteMethod method) {
  v1::WorkerMessage message;
  const int64_t attempt = save.intent.attempt();
  Status status = shard.status();
  if (status.ok()) {
    if (!method_logged_) LogInfo("rank", "checkpoints are written by {}", Name(method));
    method_logged_ = true;
    v1::ShardDone& done = *message.mutable_shard_done() = options_.vote;
    done.set_attempt(attempt);
    done.set_step(save.step);
    *done.add_shards() = *shard;
    done.mutable_state()->set_step(save.step);
    done.mutable_state()->set_consumed_samples(save.step * options_.samples_per_step);
    done.set_write_seconds(ToSeconds(options_.clock->Now() - save.taken));
    done.set_stall_seconds(ToSeconds(save.stall));
    done.set_write_method(std::string(Name(method)));
    // A session accepts no larger message, however often it is resent.
    if (const size_t bytes = done.ByteSizeLong(); bytes > options_.vote_bytes_max) {
      status = FailedPrecondition("the list of its {} tensors has {} bytes, more than {}",
                                  shard->tensors_size(), bytes, options_.vote_bytes_max);
    }
  }
  if (!status.ok()) {
    LogWarning("rank", "checkpoint attempt {} after step {}: {}", attempt, save.step,
               ToString(status));
    v1::ShardFailed& failed = *message.mutable_shard_failed();
    failed.set_job(options_.vote.job());
    failed.set_group_epoch(options_.vote.group_epoch());
    failed.set_rank(options_.rank);
    failed.set_attempt(attempt);
    failed.set_reason(ToString(status));
    failed.set_cause(CauseOfFailedWrite(status));
  }
  if (stop_.load()) return;
  options_.send(std::move(message));
  if (!status.ok()) return;
  if (const Status hit = HitFailpoint("checkpoint.vote.sent"); !hit.ok()) {
    LogWarning("rank", "{}", ToString(hit));
  }
}

}  // namespace troupe
