#include "worker/daemon/rank_child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/failpoint.h"
#include "base/log.h"

namespace troupe {
namespace {

// Limit of reads of one Read, a MiB.
constexpr int kReadsTogether = 16;

// Closes the descriptor unless released.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  int Release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

// The environment of rank processes is the daemon's with these changes: UCX leaves fatal signals to
// the rank's own handler and does not warn about the leftovers of an abort unless asked to; each
// stream of a GPU has its own work queue; threads that wait for their next part of a loop spin for
// about as long as waking one takes (2000 iterations, some 50 us) instead of 300000 iterations,
// because a rank may have fewer cores than threads or share them with another rank.
std::vector<std::string> RankEnvironment() {
  std::vector<std::string> environment = {"UCX_ERROR_SIGNALS="};
  if (std::getenv("UCX_LOG_LEVEL") == nullptr) environment.emplace_back("UCX_LOG_LEVEL=error");
  // The streams of a GPU share its work queues, 8 by default. Work that blocks in a queue blocks
  // what was enqueued behind it, even work that another rank needs before it can send the data
  // waited for here.
  if (std::getenv("CUDA_DEVICE_MAX_CONNECTIONS") == nullptr) {
    environment.emplace_back("CUDA_DEVICE_MAX_CONNECTIONS=32");
  }
  if (std::getenv("OMP_WAIT_POLICY") == nullptr && std::getenv("GOMP_SPINCOUNT") == nullptr) {
    environment.emplace_back("GOMP_SPINCOUNT=2000");
  }
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with("UCX_ERROR_SIGNALS="))
      environment.emplace_back(*entry);
  }
  return environment;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

StatusOr<std::unique_ptr<RankChild>> RankChild::Start(const std::string& executable) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return ErrnoStatus(errno, "socketpair");
  Descriptor ours(pair[0]);
  Descriptor theirs(pair[1]);
  Descriptor progress(memfd_create("troupe-rank-progress", MFD_CLOEXEC));
  if (progress.get() < 0 || ftruncate(progress.get(), sizeof(StepProgress)) != 0) {
    return ErrnoStatus(errno, "memfd_create");
  }
  void* const memory =
      mmap(nullptr, sizeof(StepProgress), PROT_READ | PROT_WRITE, MAP_SHARED, progress.get(), 0);
  if (memory == MAP_FAILED) return ErrnoStatus(errno, "map the progress memory");

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  // Duplicating a descriptor onto itself clears its close-on-exec flag, and only in the child.
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), theirs.get());
  posix_spawn_file_actions_adddup2(&actions, progress.get(), progress.get());
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A signal to the daemon's whole process group must not end its ranks: they ignore these two
  // (PrepareProcess in worker/rank/rank_process.cc), and block them until they do.
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigaddset(&blocked, SIGINT);
  posix_spawnattr_setsigmask(&attributes, &blocked);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> arguments = {"troupe-worker", "--rank-process",
                                        fmt::format("{},{}", theirs.get(), progress.get())};
  if (AnyFailpointArmed()) arguments.emplace_back(kAllowFailpointsFlag);
  std::vector<std::string> environment = RankEnvironment();
  pid_t pid = -1;
  const int error = posix_spawn(&pid, executable.c_str(), &actions, &attributes,
                                Pointers(arguments).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    munmap(memory, sizeof(StepProgress));
    return ErrnoStatus(error, "start " + executable);
  }
  std::unique_ptr<RankChild> child(new RankChild);
  child->pid_ = pid;
  child->progress_ = static_cast<StepProgress*>(memory);
  child->pidfd_ = static_cast<int>(
      syscall(SYS_pidfd_open, pid, 0));  // glibc 2.36 declares it without C linkage
  if (child->pidfd_ < 0) return ErrnoStatus(errno, "pidfd_open");
  fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  child->socket_ = ours.Release();
  return child;
}

RankChild::~RankChild() {
  if (!reaped_) {
    kill(pid_, SIGKILL);
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (socket_ >= 0) close(socket_);
  if (pidfd_ >= 0) close(pidfd_);
  munmap(progress_, sizeof(StepProgress));
}

void RankChild::Send(const v1::RankCommand& command) {
  // The coordinator's messages were parsed, so that their texts are UTF-8.
  outgoing_ +=
      EncodeFrame(command, command.has_coordinator() ? FrameTexts::kUtf8 : FrameTexts::kAny);
  Write();
}

void RankChild::Write() {
  while (!outgoing_.empty()) {
    const ssize_t count = send(socket_, outgoing_.data(), outgoing_.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      // A process that no longer reads cannot be used any more.
      if (outgoing_.size() > kFrameBytesMax) {
        LogError("worker",
                 "rank process {} does not read its commands, {} bytes wait: it is killed", pid_,
                 outgoing_.size());
        outgoing_.clear();
        Kill();
      }
      return;
    }
    if (count < 0) {
      outgoing_.clear();  // it is ending, as its pidfd will show
      return;
    }
    outgoing_.erase(0, static_cast<size_t>(count));
  }
}

std::deque<v1::RankReport> RankChild::Read() {
  std::deque<v1::RankReport> reports;
  has_more_ = false;
  char bytes[65536];
  for (int reads = 0; is_readable_; ++reads) {
    if (reads == kReadsTogether) {
      has_more_ = true;
      break;
    }
    const ssize_t count = read(socket_, bytes, sizeof(bytes));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (count <= 0) {
      is_readable_ = false;
      Kill();  // a process that closed its socket can no longer be controlled
      break;
    }
    decoder_.Append({bytes, static_cast<size_t>(count)});
  }
  while (true) {
    const StatusOr<std::optional<std::string>> frame = decoder_.Next();
    if (frame.ok() && !*frame) return reports;
    v1::RankReport report;
    if (!frame.ok() || !report.ParseFromString(**frame)) {
      LogError("worker", "rank process {} sent an invalid report and is killed", pid_);
      is_readable_ = false;
      has_more_ = false;
      Kill();
      return reports;
    }
    reports.push_back(std::move(report));
  }
}

void RankChild::Kill() {
  if (!reaped_) kill(pid_, SIGKILL);
}

ChildEnd RankChild::Reap() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0)
    TROUPE_CHECK(errno == EINTR, "waitpid of a rank process failed");
  reaped_ = true;
  ChildEnd end;
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  return end;
}

int64_t RankChild::MemoryBytes() const { return ProcessMemoryBytes(pid_); }

int64_t ProcessMemoryBytes(pid_t pid) {
  const std::string path = fmt::format("/proc/{}/status", pid);
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return 0;
  int64_t kilobytes = 0;
  char line[256];
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    long value = 0;
    if (std::sscanf(line, "RssAnon: %ld kB", &value) == 1 ||
        std::sscanf(line, "RssShmem: %ld kB", &value) == 1) {
      kilobytes += value;
    }
  }
  std::fclose(file);
  return kilobytes * 1024;
}

}  // namespace troupe
