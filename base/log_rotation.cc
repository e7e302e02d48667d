#include "base/log_rotation.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace troupe {
namespace {

std::atomic<int64_t> limit_bytes{0};
std::atomic<int> limit_files{0};
std::mutex rotation;

// Returns the path of the file behind standard error; empty if it is not a file or was moved.
std::string OutputPath() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/fd/2", path, sizeof path);
  if (length <= 0 || length == static_cast<ssize_t>(sizeof path)) return {};
  const std::string found(path, static_cast<size_t>(length));
  struct stat here {
  }, there{};
  if (fstat(STDERR_FILENO, &here) != 0 || stat(found.c_str(), &there) != 0) return {};
  return here.st_dev == there.st_dev && here.st_ino == there.st_ino ? found : std::string();
}

bool IsFull() {
  struct stat info {};
  const int64_t bytes = limit_bytes.load(std::memory_order_relaxed);
  return bytes > 0 && fstat(STDERR_FILENO, &info) == 0 && S_ISREG(info.st_mode) &&
         info.st_size >= bytes;
}

template <typename Number>
Number NumberIn(const char* variable, Number otherwise) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  Number value{};
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  return error == std::errc() && *end == '\0' && value >= 0 ? value : otherwise;
}

}  // namespace

void LimitLog(const LogLimit& limit) {
  limit_files = limit.files;
  limit_bytes = limit.bytes;
}

LogLimit LogLimitFromEnvironment() {
  const LogLimit otherwise;
  return {NumberIn(kLogBytesVariable, otherwise.bytes),
          NumberIn(kLogFilesVariable, otherwise.files)};
}

Status MoveLogAside(const std::string& path, int files) {
  const auto aside = [&](int number) { return fmt::format("{}.{}", path, number); };
  if (files == 0) {
    return unlink(path.c_str()) == 0 ? OkStatus() : ErrnoStatus(errno, "unlink " + path);
  }
  for (int number = files; number > 1; --number) {
    // A file that does not exist yet is skipped.
    if (rename(aside(number - 1).c_str(), aside(number).c_str()) != 0 && errno != ENOENT) {
      return ErrnoStatus(errno, "rename " + aside(number - 1));
    }
  }
  if (rename(path.c_str(), aside(1).c_str()) != 0) return ErrnoStatus(errno, "rename " + path);
  return OkStatus();
}

void RotateLogIfFull() {
  if (!IsFull()) return;
  const std::lock_guard lock(rotation);
  const std::string path = OutputPath();
  if (path.empty() || !IsFull()) return;  // another thread has rotated the log
  // If the rename fails, the log continues in the same file beyond its limit.
  if (!MoveLogAside(path, limit_files).ok()) return;
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  struct stat out {
  }, error{};
  fstat(STDOUT_FILENO, &out);
  fstat(STDERR_FILENO, &error);
  if (out.st_dev == error.st_dev && out.st_ino == error.st_ino) {
    std::fflush(stdout);
    dup2(file, STDOUT_FILENO);
  }
  dup2(file, STDERR_FILENO);
  close(file);
}

}  // namespace troupe
