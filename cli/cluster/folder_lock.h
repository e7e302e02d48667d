// Makes a second `up` or `down` of the same folder wait.
#ifndef TROUPE_CLI_CLUSTER_FOLDER_LOCK_H_
#define TROUPE_CLI_CLUSTER_FOLDER_LOCK_H_

#include <chrono>
#include <string>
#include <utility>

#include "base/status.h"

namespace troupe {

// The destructor releases the lock.
class FolderLock {
 public:
  // DEADLINE_EXCEEDED if another process holds the lock for longer than `limit`.
  static StatusOr<FolderLock> Acquire(const std::string& folder, std::chrono::seconds limit);

  FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ~FolderLock();

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_FOLDER_LOCK_H_
