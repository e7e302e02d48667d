#include "worker/daemon/file_chores.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "base/failpoint.h"
#include "base/file_system.h"
#include "base/log.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/folder.h"
#include "checkpoint/read/verify.h"
#include "checkpoint/write/rank_image.h"
#include "worker/daemon/left_trace.h"
#include "worker/daemon/rank_logs.h"

namespace troupe {
namespace {

constexpr size_t kMaxWaiting = 1024;
// Niceness of the thread that reads commits back, because ranks of the host train meanwhile.
constexpr int kReadBackNiceness = 10;

}  // namespace

FileChores::FileChores(session::Config config, std::shared_ptr<EventQueue> events)
    : config_(std::move(config)),
      events_(std::move(events)),
      executor_(kMaxWaiting),
      remover_(kMaxWaiting),
      verifier_(kMaxWaiting) {
  verifier_.Run([] {
    if (setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kReadBackNiceness) != 0) {
      LogWarning("worker", "{}", ToString(ErrnoStatus(errno, "lower the priority of a thread")));
    }
  });
}

FileChores::~FileChores() { stop_ = true; }

void FileChores::ReadLogs(v1::ReadLogs request, std::shared_ptr<CoordinatorStream> stream) {
  const bool queued = executor_.Run([this, request, stream] {
    PosixFileSystem files;
    for (v1::WorkerMessage& message : ReadRankLogs(files, config_, request)) {
      if (stream) stream->Send(std::move(message));
    }
  });
  if (!queued) LogWarning("worker", "read logs of {}: too many other tasks wait", request.job());
}

void FileChores::ReadTrace(v1::TraceRequest request, int rank,
                           std::shared_ptr<CoordinatorStream> stream) {
  const bool queued = executor_.Run([this, request, rank, stream] {
    PosixFileSystem files;
    if (stream) stream->Send(ReadLeftTrace(files, config_, request, rank));
  });
  if (!queued) LogWarning("worker", "read a trace of {}: too many other tasks wait", request.job());
}

void FileChores::Remove(v1::DeleteCheckpoint request) {
  const bool queued = remover_.Run([this, request] {
    PosixFileSystem files;
    // In a different folder the attempt would seem to be deleted already.
    Status removed = CheckFolderId(files, FolderOfAttempt(request.path()), request.folder_id());
    if (removed.ok()) removed = DeleteAttempt(files, request.path());
    if (!removed.ok()) {
      LogWarning("worker", "remove checkpoint: {}", ToString(removed));
      return;
    }
    session::CheckpointGone gone;
    gone.deleted.set_job(request.job());
    gone.deleted.set_attempt(request.attempt());
    gone.deleted.set_path(request.path());
    gone.deleted.set_none_writes(request.none_writes());
    events_->Push(std::move(gone));
  });
  if (!queued)
    LogWarning("worker", "remove checkpoint {}: too many other tasks wait", request.path());
}

void FileChores::RemoveLogs(v1::ForgetJob request) {
  const int64_t asked_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  const bool queued = executor_.Run([this, request, asked_ns] {
    PosixFileSystem files;
    const Status removed = RemoveRankLogs(files, config_, request.job(), asked_ns);
    if (!removed.ok()) LogWarning("worker", "remove logs: {}", ToString(removed));
  });
  if (!queued)
    LogWarning("worker", "the logs of {} are kept: too many other tasks wait", request.job());
}

void FileChores::RemoveImages(v1::DeleteImages request) {
  const bool queued = executor_.Run([this, request] {
    PosixFileSystem files;
    for (const std::string& path : request.paths()) {
      const Status removed = DeleteRankImage(files, config_.image_directory, path);
      if (!removed.ok()) LogWarning("worker", "remove an image: {}", ToString(removed));
    }
  });
  if (!queued)
    LogWarning("worker", "the images of {} are kept: too many other tasks wait", request.job());
}

void FileChores::Verify(v1::VerifyCheckpoint request) {
  {
    const std::lock_guard lock(mutex_);
    if (!verifying_.insert(request.path()).second) return;
  }
  if (verifier_.Run([this, request] { ReadBack(request); })) return;
  Say(request, ResourceExhausted("{} commits already wait to be verified", kMaxWaiting));
}

void FileChores::ReadBack(const v1::VerifyCheckpoint& request) {
  Status found = HitFailpoint("checkpoint.verify.begin");
  if (found.ok()) {
    PosixFileSystem files;
    found = CheckFolderId(files, FolderOfAttempt(request.path()), request.folder_id());
    if (found.ok()) {
      found = VerifyCheckpoint(files, request.path(), request.digest(), &stop_).ToStatus();
      // The folder is mounted here, so a missing checkpoint is lost.
      if (found.code() == StatusCode::kNotFound && !request.folder_id().empty())
        found = DataLoss("{}", Message(found));
    }
  }
  // The coordinator will ask the daemon's next life.
  if (stop_) return;
  if (!found.ok()) LogWarning("worker", "verify {}: {}", request.path(), ToString(found));
  Say(request, found);
}

void FileChores::Say(const v1::VerifyCheckpoint& request, const Status& found) {
  {
    const std::lock_guard lock(mutex_);
    verifying_.erase(request.path());
  }
  session::CheckpointReadBack read;
  read.verified.set_job(request.job());
  read.verified.set_attempt(request.attempt());
  read.verified.set_path(request.path());
  read.verified.set_ok(found.ok());
  read.verified.set_damaged(found.code() == StatusCode::kDataLoss);
  read.verified.set_reason(std::string(Message(found)));
  events_->Push(std::move(read));
}

}  // namespace troupe
