#include "cli/cluster/supervisor_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <sstream>

#include "base/file_system.h"
#include "base/text_file.h"
#include "cli/cluster/process.h"
#include "cli/cluster/process_folder.h"

namespace troupe {
namespace {

std::string LockText(const ProcessId& process) {
  return fmt::format("{} {}\n", process.pid, process.start_ticks);
}

// Returns the process that the lock file states; absent if its content has another form.
std::optional<ProcessId> ReadStatedProcess(const std::string& folder) {
  const int file = open(SupervisorLockPath(folder).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::array<char, 64> content;
  const ssize_t bytes = pread(file, content.data(), content.size(), 0);
  close(file);
  if (bytes <= 0) return std::nullopt;
  const std::string text(content.data(), static_cast<size_t>(bytes));
  std::istringstream words(text);
  ProcessId process;
  if (!(words >> process.pid >> process.start_ticks) || LockText(process) != text)
    return std::nullopt;
  return process;
}

bool Supervises(const ProcessId& process, const std::string& folder) {
  const std::string process_folder = fmt::format("/proc/{}", process.pid);
  const StatusOr<std::string> command_line = ReadTextFile(JoinPath(process_folder, "cmdline"));
  if (!command_line.ok()) return false;
  const std::optional<std::string> stated = SupervisedFolder(*command_line);
  if (!stated) return false;
  // A relative folder is relative to the working directory of the process.
  const auto supervised = std::filesystem::path(JoinPath(process_folder, "cwd")) / *stated;
  std::error_code error;
  return std::filesystem::equivalent(supervised, folder, error);
}

}  // namespace

std::string SupervisorLockPath(const std::string& folder) {
  return JoinPath(folder, "supervisor.lock");
}

StatusOr<SupervisorLock> SupervisorLock::Acquire(const std::string& folder) {
  const std::string path = SupervisorLockPath(folder);
  SupervisorLock lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock.descriptor_ < 0) return ErrnoStatus(errno, path);
  if (flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0)
    return FailedPrecondition("{} is locked: another supervisor is running", path);
  if (ftruncate(lock.descriptor_, 0) != 0) return ErrnoStatus(errno, path);
  const ProcessId self = FindProcess(getpid()).value_or(ProcessId{.pid = getpid()});
  TROUPE_RETURN_IF_ERROR(WriteText(lock.descriptor_, LockText(self), path));
  return lock;
}

SupervisorLock::~SupervisorLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool SupervisorLives(const std::string& folder) {
  const int descriptor = open(SupervisorLockPath(folder).c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool held = flock(descriptor, LOCK_EX | LOCK_NB) != 0;
  close(descriptor);
  return held;
}

StatusOr<ProcessId> FindSupervisor(const std::string& folder) {
  // A copy of a folder has the file of the original, but nobody holds its lock.
  if (!SupervisorLives(folder)) return NotFound("no supervisor of {} is running", folder);
  const std::string path = SupervisorLockPath(folder);
  const std::optional<ProcessId> stated = ReadStatedProcess(folder);
  if (!stated) return FailedPrecondition("{} does not state a process", path);
  // The process is checked after its command line: until then it was the one of this pid.
  if (!Supervises(*stated, folder) || !IsAlive(*stated)) {
    return FailedPrecondition("{} states the process {}, which is no supervisor of {}", path,
                              stated->pid, folder);
  }
  return *stated;
}

bool IsSupervisorOf(const std::string& folder, const ProcessId& process) {
  if (ReadStatedProcess(folder) != process) return false;
  const StatusOr<ProcessId> found = FindSupervisor(folder);
  return found.ok() && *found == process;
}

}  // namespace troupe
