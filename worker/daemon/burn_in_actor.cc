#include "worker/daemon/burn_in_actor.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/durable_write.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "checkpoint/format/folder.h"
#include "worker/daemon/event_sender.h"

namespace troupe {
namespace {

constexpr size_t kFileBytes = 1 << 20;
constexpr size_t kOutputBytes = 4096;

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

namespace {

// One burn-in: the state that its thread shares with the actor. It outlives both.
class Trial {
 public:
  Trial(BurnInOptions options, v1::BurnIn request)
      : options_(std::move(options)), request_(std::move(request)) {}

  const v1::BurnIn& request() const { return request_; }

  // Runs `trial` on a thread of its own, which passes the result to `ended`: ABORTED if it is
  // stopped.
  static void Begin(const std::shared_ptr<Trial>& trial, std::function<void(Status)> ended) {
    std::thread([trial, ended = std::move(ended)] { ended(trial->Try()); }).detach();
  }

  void Stop() {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    if (pid_ > 0) kill(pid_, SIGKILL);
  }

  std::string activity() {
    const std::lock_guard lock(mutex_);
    return activity_;
  }

 private:
  Status Try();
  Status RunProcess();
  StatusOr<pid_t> Spawn(int output) const;

  // Records the next activity; returns ABORTED if it has been stopped.
  Status BeginActivity(std::string activity) {
    const std::lock_guard lock(mutex_);
    if (is_stopped_) return Aborted("stopped");
    activity_ = std::move(activity);
    return OkStatus();
  }

  const BurnInOptions options_;
  const v1::BurnIn request_;
  std::mutex mutex_;  // guards the members below
  bool is_stopped_ = false;
  std::string activity_ = "its thread is starting";
  pid_t pid_ = 0;  // its process; 0: none, or already reaped
};

Status Trial::Try() {
  for (const std::string& folder : request_.folders()) {
    TROUPE_RETURN_IF_ERROR(BeginActivity("it is testing folder " + folder));
    PosixFileSystem files;
    TROUPE_RETURN_IF_ERROR(options_.try_folder ? options_.try_folder(folder)
                                               : TryFolder(files, folder, options_.name));
  }
  TROUPE_RETURN_IF_ERROR(BeginActivity("it is starting its process"));
  return RunProcess();
}

StatusOr<pid_t> Trial::Spawn(int output) const {
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
  if (AnyFailpointArmed()) arguments.emplace_back(kAllowFailpointsFlag);
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

Status Trial::RunProcess() {
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
    if (is_stopped_) kill(pid_, SIGKILL);
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
    stopped = is_stopped_;
  }
  const std::string last = LastLine(output);
  close(output);
  if (stopped) return Aborted("stopped: a job needs the devices");
  if (WIFSIGNALED(status)) return Aborted("signal {}: {}", WTERMSIG(status), last);
  if (WEXITSTATUS(status) != 0) return DataLoss("exit code {}: {}", WEXITSTATUS(status), last);
  return OkStatus();
}

struct TrialEnded {
  static constexpr std::string_view kMessageName = "burn_in.ended";
  uint64_t trial = 0;
  Status result;
};
struct TrialLimit {
  static constexpr std::string_view kMessageName = "burn_in.limit";
  uint64_t trial = 0;
};
struct StopLimit {
  static constexpr std::string_view kMessageName = "burn_in.stop_limit";
  uint64_t trial = 0;
};

class BurnInActor final : public Actor {
 public:
  BurnInActor(BurnInOptions options, std::shared_ptr<ActorGate> gate)
      : options_(std::move(options)), gate_(std::move(gate)) {}
  ~BurnInActor() override {
    if (trial_) trial_->Stop();
  }

  Status Start(Context& context) override {
    events_ =
        std::make_unique<EventSender>([gate = gate_, owner = context.owner()](AnyMessage message) {
          return gate->Send(owner, std::move(message));
        });
    return OkStatus();
  }

  Status Handle(AnyMessage message, Context& context) override {
    if (auto* want = message.As<WantBurnIn>()) return Want(std::move(want->request), context);
    if (auto* ended = message.As<TrialEnded>()) {
      return IsCurrent(ended->trial) ? Finish(std::move(ended->result), context) : OkStatus();
    }
    if (const auto* limit = message.As<TrialLimit>()) {
      if (!IsCurrent(limit->trial)) return OkStatus();
      trial_->Stop();
      return Finish(DeadlineExceeded("failed: it did not end within {} s: {}",
                                     ToSeconds(LimitOf(trial_->request())), trial_->activity()),
                    context);
    }
    if (const auto* limit = message.As<StopLimit>()) {
      if (!IsCurrent(limit->trial)) return OkStatus();
      return Finish(Aborted("stopped, but it did not end within {} s: {}",
                            ToSeconds(options_.stop_limit), trial_->activity()),
                    context);
    }
    if (message.As<OfferAgain>()) return events_->OfferLater(context);
    return Internal("the burn-in received {}", message.name());
  }

 private:
  bool IsCurrent(uint64_t trial) const { return trial_ != nullptr && trial == number_; }
  Duration LimitOf(const v1::BurnIn& request) const {
    return FromSeconds(request.seconds()) + options_.allowance;
  }

  Status Want(std::optional<v1::BurnIn> request, Context& context) {
    if (!trial_) {
      if (request) Begin(std::move(*request), context);
      return OkStatus();
    }
    trial_->Stop();
    context.SetTimer(options_.stop_limit, AnyMessage(StopLimit{number_}));
    const std::optional<v1::BurnIn> replaced = std::exchange(next_, std::move(request));
    return replaced ? Report(*replaced, Aborted("stopped"), context) : OkStatus();
  }

  void Begin(v1::BurnIn request, Context& context) {
    const uint64_t number = ++number_;
    context.SetTimer(LimitOf(request), AnyMessage(TrialLimit{number}));
    trial_ = std::make_shared<Trial>(options_, std::move(request));
    Trial::Begin(trial_, [gate = gate_, self = context.self(), number](Status result) {
      const Status sent = gate->Send(self, AnyMessage(TrialEnded{number, std::move(result)}));
      // The limit of its time ends it for the actor.
      if (sent.code() == StatusCode::kResourceExhausted)
        LogWarning("worker", "the end of a burn-in is noticed late: {}", Message(sent));
    });
  }

  Status Finish(Status result, Context& context) {
    const std::shared_ptr<Trial> ended = std::exchange(trial_, nullptr);
    if (next_) Begin(*std::exchange(next_, std::nullopt), context);
    return Report(ended->request(), result, context);
  }

  Status Report(const v1::BurnIn& request, const Status& result, Context& context) {
    LogInfo("worker", "burn-in: {}", result.ok() ? "sound" : ToString(result));
    session::BurnInEnded ended;
    ended.done.set_request(request.request());
    ended.done.set_sound(result.ok());
    ended.done.set_reason(std::string(Message(result)));
    return events_->Report(std::move(ended), context);
  }

  const BurnInOptions options_;
  const std::shared_ptr<ActorGate> gate_;
  std::unique_ptr<EventSender> events_;
  std::shared_ptr<Trial> trial_;  // the one in progress; null: none
  uint64_t number_ = 0;           // the number of trial_
  std::optional<v1::BurnIn> next_;
};

}  // namespace

std::unique_ptr<Actor> MakeBurnInActor(BurnInOptions options, std::shared_ptr<ActorGate> gate) {
  return std::make_unique<BurnInActor>(std::move(options), std::move(gate));
}

}  // namespace troupe
