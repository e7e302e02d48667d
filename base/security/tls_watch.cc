#include "base/security/tls_watch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text_file.h"

namespace troupe {
namespace {

constexpr std::chrono::seconds kReadInterval{1};

// The numbers of descriptors that no MemoryFile uses now.
class FreeNumbers {
 public:
  static FreeNumbers& Instance() {
    static FreeNumbers& numbers = *new FreeNumbers;
    return numbers;
  }
  // Returns -1 if the system refuses another one.
  int Get() {
    const std::lock_guard lock(mutex_);
    if (numbers_.empty()) return memfd_create("troupe-tls", MFD_CLOEXEC);
    const int number = numbers_.back();
    numbers_.pop_back();
    return number;
  }
  void Put(int number) {
    const std::lock_guard lock(mutex_);
    numbers_.push_back(number);
  }

 private:
  std::mutex mutex_;
  std::vector<int> numbers_;
};

// Writes all of `contents` to the empty file `fd`. gRPC compares the times of modification, in
// whole seconds, before and after it reads key and certificate; each version has a time of its own,
// so that it notices a replacement in between.
Status WriteVersion(int fd, const std::string& contents) {
  static std::atomic<int64_t> version = 0;
  TROUPE_RETURN_IF_ERROR(WriteText(fd, contents, "a file in memory"));
  const timespec time{.tv_sec = ++version, .tv_nsec = 0};
  const timespec times[] = {time, time};
  if (futimens(fd, times) != 0) return ErrnoStatus(errno, "set the time of a file in memory");
  return OkStatus();
}

}  // namespace

MemoryFile::MemoryFile() : number_(FreeNumbers::Instance().Get()) {}

MemoryFile::~MemoryFile() {
  if (number_ < 0) return;
  // The key leaves the memory even if gRPC has the file open.
  if (ftruncate(number_, 0) != 0) {
    LogWarning("security", "cannot empty a file in memory: error {}", errno);
  }
  FreeNumbers::Instance().Put(number_);
}

Status MemoryFile::Replace(const std::string& contents) {
  const int fd = number_ < 0 ? -1 : memfd_create("troupe-tls", MFD_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, "memfd_create");
  Status status = WriteVersion(fd, contents);
  if (status.ok() && dup3(fd, number_, O_CLOEXEC) < 0) status = ErrnoStatus(errno, "dup3");
  close(fd);
  return status;
}

std::string MemoryFile::path() const { return fmt::format("/proc/self/fd/{}", number_); }

TlsWatch::TlsWatch(TlsFiles files) : files_(std::move(files)) {
  Read(std::time(nullptr)).IgnoreError();  // the log has it
  thread_ = std::thread([this] { Run(); });
}

TlsWatch::~TlsWatch() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

Status TlsWatch::Read(int64_t now_seconds) {
  const std::lock_guard lock(mutex_);
  const Status status = ReadLocked(now_seconds);
  const std::string error = status.ok() ? "" : std::string(Message(status));
  if (error != reported_ && !error.empty()) {
    LogWarning("security", "the former certificates stay in use: {}", error);
  }
  reported_ = error;
  return status;
}

Status TlsWatch::ReadLocked(int64_t now_seconds) {
  TROUPE_ASSIGN_OR_RETURN(TlsContents contents, ReadTlsContents(files_));
  if (contents == used_) return OkStatus();
  TROUPE_ASSIGN_OR_RETURN(const Identity identity, CheckTlsContents(files_, contents, now_seconds));
  if (identity != files_.identity) {
    return InvalidArgument("{}: the identity is {}, and this process began as {}: restart it",
                           files_.certificate, ToUri(identity), ToUri(files_.identity));
  }
  TROUPE_RETURN_IF_ERROR(authority_.Replace(contents.authority));
  TROUPE_RETURN_IF_ERROR(identity_.Replace(contents.certificate + "\n" + contents.key));
  const bool is_first = used_.authority.empty();
  used_ = std::move(contents);
  if (is_first) return OkStatus();
  if (files_.has_certificate()) {
    LogInfo("security", "the new certificates of {} are in use", ToUri(identity));
  } else {
    LogInfo("security", "the new authorities of {} are in use", files_.authority);
  }
  return OkStatus();
}

void TlsWatch::Run() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kReadInterval, [this] { return ends_; })) {
    lock.unlock();
    Read(std::time(nullptr)).IgnoreError();  // the log has it
    lock.lock();
  }
}

}  // namespace troupe
