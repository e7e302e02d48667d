// Keeps two processes from writing the dataset of one prefix: they would write the same temporary
// files, and one of them would keep a mixture of both.
#ifndef TROUPE_DATA_PREFIX_LOCK_H_
#define TROUPE_DATA_PREFIX_LOCK_H_

#include <string>
#include <utility>

#include "base/status.h"

namespace troupe {

// The lock is one of the file PREFIX.lock, which the destructor removes. A process that is killed
// leaves the file, and no lock.
class PrefixLock {
 public:
  // FAILED_PRECONDITION if another process writes the prefix. Holds nothing on a file system
  // without such locks.
  static StatusOr<PrefixLock> Acquire(const std::string& prefix);

  PrefixLock(PrefixLock&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  ~PrefixLock();

 private:
  PrefixLock(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_;  // -1: holds nothing
};

}  // namespace troupe

#endif  // TROUPE_DATA_PREFIX_LOCK_H_
