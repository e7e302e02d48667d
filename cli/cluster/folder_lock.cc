#include "cli/cluster/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "base/file_system.h"

namespace troupe {
namespace {

constexpr std::chrono::milliseconds kPoll{20};

}  // namespace

StatusOr<FolderLock> FolderLock::Acquire(const std::string& folder, std::chrono::seconds limit) {
  using std::chrono::steady_clock;
  const std::string path = JoinPath(folder, "up.lock");
  FolderLock lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock.descriptor_ < 0) return ErrnoStatus(errno, path);
  const auto end = steady_clock::now() + limit;
  while (flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (steady_clock::now() > end) {
      return DeadlineExceeded("{}: another `troupe up` or `troupe down` has locked it for {} s",
                              path, limit.count());
    }
    std::this_thread::sleep_for(kPoll);
  }
  return lock;
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace troupe
