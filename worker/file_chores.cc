#include "worker/file_chores.h"

#include <utility>

#include "base/file_system.h"
#include "base/log.h"
#include "checkpoint/attempt.h"
#include "worker/rank_logs.h"

namespace troupe {
namespace {

constexpr size_t kMaxWaiting = 1024;

}  // namespace

FileChores::FileChores(session::Config config, std::shared_ptr<EventQueue> events)
    : config_(std::move(config)), events_(std::move(events)), executor_(kMaxWaiting) {}

void FileChores::ReadLogs(v1::ReadLogs request, std::shared_ptr<CoordinatorStream> stream) {
  const bool queued = executor_.Run([this, request, stream] {
    PosixFileSystem files;
    for (v1::WorkerMessage& message : ReadRankLogs(files, config_, request)) {
      if (stream) stream->Send(std::move(message));
    }
  });
  if (!queued) LogWarning("worker", "read logs of {}: too much else waits", request.job());
}

void FileChores::Remove(v1::DeleteCheckpoint request) {
  const bool queued = executor_.Run([this, request] {
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
  if (!queued) LogWarning("worker", "remove checkpoint {}: too much else waits", request.path());
}

}  // namespace troupe
