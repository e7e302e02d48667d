#include "worker/daemon/burn_in_run.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "checkpoint/format/folder.h"

namespace troupe {
namespace {

constexpr size_t kFileBytes = 1 << 20;
constexpr size_t kOutputBytes = 4096;
constexpr size_t kMostWaiting = 4;

// Returns the last line that the process has written to `descriptor`.
std::string LastLine(int descriptor) {
  std::string text(kOutputBytes, '\0');
  const off_t end = lseek(descriptor, 0, SEEK_END);
  const off_t from = std::max<off_t>(0, end - static_cast<off_t>(kOutputBytes));
  const ssize_t count = pread(descriptor, text.data(), text.size(), from);
  text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  const size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

}  // namespace

Status TryFolder(FileSystem& files, const std::string& identified, const std::string& name) {
  const auto [folder, id] = SplitFolderIdPath(identified);
  TROUPE_RETURN_IF_ERROR(CheckFolderId(files, folder, id));
  TROUPE_ASSIGN_OR_RETURN(const std::string any, FindFolderId(files, folder));
  if (any.empty()) {
    return Unavailable(
        "folder {} has no identity file (.troupe-folder-…), which every folder of checkpoints has: "
        "it is not mounted on this host",
        folder);
  }
  const std::string path = JoinPath(folder, fmt::format(".burn-in-{}", name));
  std::string bytes(kFileBytes, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31 + i / 251);
  const auto write_and_compare = [&]() -> Status {
    TROUPE_RETURN_IF_ERROR(WriteFileDurably(files, path, AsBytes(bytes)));
    TROUPE_ASSIGN_OR_RETURN(const std::string read,
                            ReadFile(files, path, kFileBytes, SymbolicLinks::kRefuse));
    if (read != bytes)
      return DataLoss("{}: the data that was read differs from the data that was written", path);
    return OkStatus();
  };
  const Status tried = write_and_compare();
  const Status removed = files.Remove(path);
  return tried.ok() ? removed : tried;
}

// One burn-in: the state that its thread shares with those that wait for it. It outlives both.
class BurnInRun::Trial {
 public:
  Trial(BurnInOptions options, v1::BurnIn request)
      : options_(std::move(options)), request_(std::move(request)) {}

  const v1::BurnIn& request() const { return request_; }

  // Runs `trial` on a thread of its own and returns its result: ABORTED if it is stopped,
  // DEADLINE_EXCEEDED, which names the activity, if it does not end in time.
  static Status Run(const std::shared_ptr<Trial>& trial) {
    std::thread([trial] { trial->End(trial->Try()); }).detach();
    return trial->Await();
  }

  void Stop() {
    const std::lock_guard lock(mutex_);
    StopLocked();
  }

 private:
  Status Try();
  Status RunProcess();
  StatusOr<pid_t> Spawn(int output) const;

  Status Await() {
    std::unique_lock lock(mutex_);
    const Duration limit = FromSeconds(request_.seconds()) + options_.allowance;
    if (!changed_.wait_for(lock, limit, [this] { return found_ || stopped_; })) {
      StopLocked();
      return DeadlineExceeded("failed: it did not end within {} s: {}", ToSeconds(limit),
                              activity_);
    }
    if (changed_.wait_for(lock, options_.stop_limit, [this] { return found_.has_value(); }))
      return *found_;
    return Aborted("stopped, but it did not end within {} s: {}", ToSeconds(options_.stop_limit),
                   activity_);
  }

  void End(Status found) {
    const std::lock_guard lock(mutex_);
    found_ = std::move(found);
    changed_.notify_all();
  }

  // Records the next activity; returns ABORTED if it has been stopped.
  Status Begin(std::string activity) {
    const std::lock_guard lock(mutex_);
    if (stopped_) return Aborted("stopped");
    activity_ = std::move(activity);
    return OkStatus();
  }

  void StopLocked() {
    stopped_ = true;
    if (pid_ > 0) kill(pid_, SIGKILL);
    changed_.notify_all();
  }

  const BurnInOptions options_;
  const v1::BurnIn request_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::optional<Status> found_;  // absent until it has ended
  std::string activity_ = "its thread is starting";
  pid_t pid_ = 0;  // its process; 0: none, or already reaped
};

Status BurnInRun::Trial::Try() {
  for (const std::string& folder : request_.folders()) {
    TROUPE_RETURN_IF_ERROR(Begin("it is testing folder " + folder));
    PosixFileSystem files;
    TROUPE_RETURN_IF_ERROR(options_.try_folder ? options_.try_folder(folder)
                                               : TryFolder(files, folder, options_.name));
  }
  TROUPE_RETURN_IF_ERROR(Begin("it is starting its process"));
  return RunProcess();
}

StatusOr<pid_t> BurnInRun::Trial::Spawn(int output) const {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> arguments = {
      "troupe-worker",
      "--burn-in",
      fmt::format("{}", std::lround(std::ceil(request_.seconds()))),
      "--devices",
      options_.devices,
      "--data-dir",
      options_.log_directory};
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, options_.executable.c_str(), &actions, &attributes,
                                pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return ErrnoStatus(error, "start " + options_.executable);
  return pid;
}

Status BurnInRun::Trial::RunProcess() {
  const int output = memfd_create("troupe-burn-in", MFD_CLOEXEC);
  if (output < 0) return ErrnoStatus(errno, "memfd_create");
  // Not under the lock, because a hanging mount may block the start of a program.
  const StatusOr<pid_t> spawned = Spawn(output);
  if (!spawned.ok()) {
    close(output);
    return spawned.status();
  }
  {
    const std::lock_guard lock(mutex_);
    pid_ = *spawned;
    activity_ = fmt::format("its process {} is running", pid_);
    if (stopped_) kill(pid_, SIGKILL);
  }
  // The pid cannot be reused until it is reaped, which happens under the lock that Stop takes.
  siginfo_t info;
  while (waitid(P_PID, static_cast<id_t>(*spawned), &info, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  int status = 0;
  bool stopped = false;
  {
    const std::lock_guard lock(mutex_);
    while (waitpid(*spawned, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    stopped = stopped_;
  }
  const std::string last = LastLine(output);
  close(output);
  if (stopped) return Aborted("stopped: a job needs the devices");
  if (WIFSIGNALED(status)) return Aborted("signal {}: {}", WTERMSIG(status), last);
  if (WEXITSTATUS(status) != 0) return DataLoss("exit code {}: {}", WEXITSTATUS(status), last);
  return OkStatus();
}

BurnInRun::BurnInRun(BurnInOptions options, std::shared_ptr<EventQueue> events)
    : options_(std::move(options)), events_(std::move(events)), executor_(kMostWaiting) {}

BurnInRun::~BurnInRun() { Stop(); }

void BurnInRun::Start(v1::BurnIn request) {
  const auto trial = std::make_shared<Trial>(options_, std::move(request));
  {
    const std::lock_guard lock(mutex_);
    if (newest_) newest_->Stop();
    newest_ = trial;
  }
  const bool queued = executor_.Run([events = events_, trial] {
    const Status tried = Trial::Run(trial);
    LogInfo("worker", "burn-in: {}", tried.ok() ? "sound" : ToString(tried));
    session::BurnInEnded ended;
    ended.done.set_request(trial->request().request());
    ended.done.set_sound(tried.ok());
    ended.done.set_reason(std::string(Message(tried)));
    events->Push(std::move(ended));
  });
  if (!queued) LogWarning("worker", "burn-in: too many other tasks wait");
}

void BurnInRun::Stop() {
  const std::lock_guard lock(mutex_);
  if (newest_) newest_->Stop();
}

}  // namespace troupe
