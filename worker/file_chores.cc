#include "worker/file_chores.h"

#include <utility>

#include "base/file_system.h"
#include "base/log.h"
#include "checkpoint/attempt.h"
#include "worker/rank_logs.h"

namespace troupe {

FileChores::FileChores(session::Config config, std::shared_ptr<EventQueue> events)
    : config_(std::move(config)), events_(std::move(events)), thread_([this] { Run(); }) {}

FileChores::~FileChores() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void FileChores::ReadLogs(v1::ReadLogs request, std::shared_ptr<CoordinatorStream> stream) {
  Queue([this, request = std::move(request), stream = std::move(stream)] {
    PosixFileSystem files;
    for (v1::WorkerMessage& message : ReadRankLogs(files, config_, request)) {
      if (stream) stream->Send(std::move(message));
    }
  });
}

void FileChores::Remove(v1::DeleteCheckpoint request) {
  Queue([this, request = std::move(request)] {
    PosixFileSystem files;
    if (const Status removed = DeleteAttempt(files, request.path()); !removed.ok()) {
      LogWarning("worker", "remove checkpoint: {}", ToString(removed));
      return;
    }
    session::CheckpointGone gone;
    gone.deleted.set_job(request.job());
    gone.deleted.set_attempt(request.attempt());
    gone.deleted.set_path(request.path());
    events_->Push(std::move(gone));
  });
}

void FileChores::Queue(std::function<void()> work) {
  {
    std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void FileChores::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || !work_.empty(); });
    if (stopping_) return;
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

}  // namespace troupe
