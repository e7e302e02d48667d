#include "worker/daemon/file_tasks.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <string_view>
#include <utility>

#include "base/failpoint.h"
#include "base/file_system.h"
#include "base/log.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/folder.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/read/verify.h"
#include "checkpoint/write/rank_image.h"
#include "plan/job/job_files.h"
#include "worker/daemon/left_trace.h"
#include "worker/daemon/rank_logs.h"

namespace troupe {

struct FileTasks::Shared {
  explicit Shared(FileTasksOptions the_options) : options(std::move(the_options)) {}

  const FileTasksOptions options;
  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::set<std::string> verifying;  // paths, from request to answer; guarded by mutex
  // The newest request for each path whose removal waits; guarded by mutex.
  std::map<std::string, v1::DeleteCheckpoint> removing;
};

namespace {

// Niceness of the thread that reads commits back, because ranks of the host train meanwhile.
constexpr int kReadBackNiceness = 10;

struct ReadLogsTask {
  static constexpr std::string_view kMessageName = "files.read_logs";
  v1::ReadLogs request;
  std::set<int> running;
  AnswerCoordinator answer;
};
struct ReadTraceTask {
  static constexpr std::string_view kMessageName = "files.read_trace";
  v1::TraceRequest request;
  int rank = 0;
  AnswerCoordinator answer;
};
struct RemoveImagesTask {
  static constexpr std::string_view kMessageName = "files.remove_images";
  v1::DeleteImages request;
};
struct RemoveLogsTask {
  static constexpr std::string_view kMessageName = "files.remove_logs";
  v1::ForgetJob request;
  int64_t requested_ns = 0;
};
struct RemoveCheckpointTask {
  static constexpr std::string_view kMessageName = "files.remove_checkpoint";
  std::string path;
};
struct VerifyTask {
  static constexpr std::string_view kMessageName = "files.verify";
  v1::VerifyCheckpoint request;
};

// FAILED_PRECONDITION if the attempt in `directory` may be one of another job, into whose folder a
// link leads: its manifest is of another job, or it has none and the folder of the job is a link.
Status CheckOwner(FileSystem& files, const std::string& directory, const std::string& job) {
  const StatusOr<v1::CheckpointManifest> manifest = ReadManifest(files, directory, "");
  if (manifest.ok() && manifest->job() == job) return OkStatus();
  if (manifest.ok() && !manifest->job().empty()) {
    return FailedPrecondition("{}: its manifest is of job {}, not of {}", directory,
                              manifest->job(), job);
  }
  const std::string folder = ParentDirectory(directory);
  const auto info = files.Stat(folder, SymbolicLinks::kRefuse);
  if (!info.ok() || info->kind != FileKind::kSymbolicLink) return OkStatus();
  return FailedPrecondition(
      "{}: no manifest in it shows of which job it is, and {} is a link, which may lead into the "
      "folder of another job",
      directory, folder);
}

// Files on this host: logs, traces and images.
template <typename Shared>
class FileReader final : public Actor {
 public:
  explicit FileReader(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  Status Handle(AnyMessage message, Context&) override {
    if (shared_->stop) return OkStatus();
    const session::Config& config = shared_->options.config;
    PosixFileSystem files;
    if (const auto* logs = message.As<ReadLogsTask>()) {
      NoteAnswer(logs->answer(ReadRankLogs(files, config, logs->request, logs->running)),
                 logs->request.job());
    } else if (const auto* trace = message.As<ReadTraceTask>()) {
      std::vector<v1::WorkerMessage> answer;
      answer.push_back(ReadLeftTrace(files, config, trace->request, trace->rank));
      NoteAnswer(trace->answer(std::move(answer)), trace->request.job());
    } else if (const auto* images = message.As<RemoveImagesTask>()) {
      for (const std::string& path : images->request.paths()) {
        const Status removed = DeleteRankImage(files, config.image_directory, path);
        if (!removed.ok()) LogWarning("worker", "remove an image: {}", ToString(removed));
      }
    } else if (const auto* forget = message.As<RemoveLogsTask>()) {
      const Status removed =
          RemoveRankLogs(files, config, forget->request.job(), forget->requested_ns);
      if (!removed.ok()) LogWarning("worker", "remove logs: {}", ToString(removed));
    } else {
      return Internal("the reader of files received {}", message.name());
    }
    return OkStatus();
  }

 private:
  static void NoteAnswer(const Status& sent, const std::string& job) {
    if (!sent.ok()) LogWarning("worker", "an answer about {} is lost: {}", job, Message(sent));
  }

  const std::shared_ptr<Shared> shared_;
};

template <typename Shared>
class CheckpointRemover final : public Actor {
 public:
  explicit CheckpointRemover(std::shared_ptr<Shared> shared)
      : shared_(std::move(shared)), events_(shared_->options.send) {}

  Status Handle(AnyMessage message, Context& context) override {
    if (shared_->stop) return OkStatus();
    if (message.As<OfferAgain>()) return events_.OfferLater(context);
    const auto* task = message.As<RemoveCheckpointTask>();
    if (task == nullptr) return Internal("the remover of checkpoints received {}", message.name());
    const v1::DeleteCheckpoint request = Take(task->path);
    PosixFileSystem unconfined;
    JobFiles job(unconfined, request.roots());
    FileSystem& files = job.checkpoints();
    // In a different folder the attempt would seem to be deleted already.
    Status removed = CheckFolderId(files, FolderOfAttempt(request.path()), request.folder_id());
    if (removed.ok()) removed = CheckOwner(files, request.path(), request.job());
    if (removed.ok()) removed = DeleteAttempt(files, request.path());
    if (!removed.ok()) {
      LogWarning("worker", "remove checkpoint: {}", ToString(removed));
      return OkStatus();
    }
    session::CheckpointGone gone;
    gone.deleted.set_job(request.job());
    gone.deleted.set_attempt(request.attempt());
    gone.deleted.set_path(request.path());
    gone.deleted.set_none_writes(request.none_writes());
    return events_.Report(std::move(gone), context);
  }

 private:
  // A later request for the path waits by itself.
  v1::DeleteCheckpoint Take(const std::string& path) {
    const std::lock_guard lock(shared_->mutex);
    return std::move(shared_->removing.extract(path).mapped());
  }

  const std::shared_ptr<Shared> shared_;
  EventSender events_;
};

template <typename Shared>
class CheckpointVerifier final : public Actor {
 public:
  explicit CheckpointVerifier(std::shared_ptr<Shared> shared)
      : shared_(std::move(shared)), events_(shared_->options.send) {}

  Status Start(Context&) override {
    if (setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kReadBackNiceness) != 0)
      LogWarning("worker", "{}", ToString(ErrnoStatus(errno, "lower the priority of a thread")));
    return OkStatus();
  }

  Status Handle(AnyMessage message, Context& context) override {
    if (shared_->stop) return OkStatus();
    if (message.As<OfferAgain>()) return events_.OfferLater(context);
    const auto* task = message.As<VerifyTask>();
    if (task == nullptr) return Internal("the verifier received {}", message.name());
    const v1::VerifyCheckpoint& request = task->request;
    const Status found = ReadBack(request);
    // The coordinator will ask the daemon's next life.
    if (shared_->stop) return OkStatus();
    if (!found.ok()) LogWarning("worker", "verify {}: {}", request.path(), ToString(found));
    {
      const std::lock_guard lock(shared_->mutex);
      shared_->verifying.erase(request.path());
    }
    return events_.Report(ReadBackAnswer(request, found), context);
  }

 private:
  Status ReadBack(const v1::VerifyCheckpoint& request) {
    TROUPE_RETURN_IF_ERROR(HitFailpoint("checkpoint.verify.begin"));
    PosixFileSystem unconfined;
    JobFiles job(unconfined, request.roots());
    FileSystem& files = job.checkpoints();
    TROUPE_RETURN_IF_ERROR(
        CheckFolderId(files, FolderOfAttempt(request.path()), request.folder_id()));
    const Status found =
        VerifyCheckpoint(files, request.path(), request.digest(), &shared_->stop).ToStatus();
    // Only the job's name in a manifest that is not damaged counts.
    if (found.ok()) return CheckOwner(files, request.path(), request.job());
    // The folder is mounted here, so a missing checkpoint is lost.
    if (found.code() == StatusCode::kNotFound && !request.folder_id().empty())
      return DataLoss("{}", Message(found));
    return found;
  }

  const std::shared_ptr<Shared> shared_;
  EventSender events_;
};

int64_t WallNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

FileTasks::FileTasks(FileTasksOptions options)
    : shared_(std::make_shared<Shared>(std::move(options))),
      reader_("reader of files", std::make_unique<FileReader<Shared>>(shared_),
              shared_->options.mailbox_capacity, shared_->options.on_end),
      remover_("remover of checkpoints", std::make_unique<CheckpointRemover<Shared>>(shared_),
               shared_->options.mailbox_capacity, shared_->options.on_end),
      verifier_("verifier of checkpoints", std::make_unique<CheckpointVerifier<Shared>>(shared_),
                shared_->options.mailbox_capacity, shared_->options.on_end) {}

FileTasks::~FileTasks() { shared_->stop = true; }

void FileTasks::ReadLogs(v1::ReadLogs request, std::set<int> running, AnswerCoordinator answer) {
  const std::string job = request.job();
  const Status sent = reader_.Send(
      AnyMessage(ReadLogsTask{std::move(request), std::move(running), std::move(answer)}));
  if (!sent.ok()) LogWarning("worker", "logs of {} are not read: {}", job, Message(sent));
}

void FileTasks::ReadTrace(v1::TraceRequest request, int rank, AnswerCoordinator answer) {
  const std::string job = request.job();
  const Status sent =
      reader_.Send(AnyMessage(ReadTraceTask{std::move(request), rank, std::move(answer)}));
  if (!sent.ok()) LogWarning("worker", "a trace of {} is not read: {}", job, Message(sent));
}

void FileTasks::Remove(v1::DeleteCheckpoint request) {
  const std::string path = request.path();
  {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->removing.insert_or_assign(path, std::move(request)).second) return;
  }
  const Status sent = remover_.Send(AnyMessage(RemoveCheckpointTask{path}));
  if (sent.ok()) return;
  LogWarning("worker", "checkpoint {} stays: {}", path, Message(sent));
  const std::lock_guard lock(shared_->mutex);
  shared_->removing.erase(path);
}

void FileTasks::RemoveLogs(v1::ForgetJob request) {
  const std::string job = request.job();
  const Status sent =
      reader_.Send(AnyMessage(RemoveLogsTask{std::move(request), WallNanoseconds()}));
  if (!sent.ok()) LogWarning("worker", "logs of {} stay: {}", job, Message(sent));
}

void FileTasks::RemoveImages(v1::DeleteImages request) {
  const std::string job = request.job();
  const Status sent = reader_.Send(AnyMessage(RemoveImagesTask{std::move(request)}));
  if (!sent.ok()) LogWarning("worker", "images of {} stay: {}", job, Message(sent));
}

Status FileTasks::Verify(v1::VerifyCheckpoint request) {
  const std::string path = request.path();
  {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->verifying.insert(path).second) return OkStatus();
  }
  const Status sent = verifier_.Send(AnyMessage(VerifyTask{std::move(request)}));
  if (sent.ok()) return sent;
  const std::lock_guard lock(shared_->mutex);
  shared_->verifying.erase(path);
  return ResourceExhausted("too many commits already wait to be verified: {}", Message(sent));
}

}  // namespace troupe
