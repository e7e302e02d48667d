#include "data/prefix_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace troupe {
namespace {

constexpr int kMostTries = 100;

// Whether the path still leads to the open file: whoever held the lock before has removed it.
bool IsAt(const std::string& path, int descriptor) {
  struct stat here, there;
  return fstat(descriptor, &here) == 0 && stat(path.c_str(), &there) == 0 &&
         here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

}  // namespace

StatusOr<PrefixLock> PrefixLock::Acquire(const std::string& prefix) {
  const std::string path = prefix + ".lock";
  for (int i = 0; i < kMostTries; ++i) {
    PrefixLock lock("", open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (lock.descriptor_ < 0) return ErrnoStatus(errno, "open " + path);
    if (flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      return FailedPrecondition("{}: another process writes this dataset; it has locked {}", prefix,
                                path);
    }
    if (!IsAt(path, lock.descriptor_)) continue;
    lock.path_ = path;
    return lock;
  }
  return FailedPrecondition("{}: {} was removed each of the {} times that it was made", prefix,
                            path, kMostTries);
}

PrefixLock::~PrefixLock() {
  if (descriptor_ < 0) return;
  if (!path_.empty()) unlink(path_.c_str());
  close(descriptor_);
}

}  // namespace troupe
