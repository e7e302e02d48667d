// DIR/supervisor.lock: the supervisor of the local cluster in DIR holds it while it is alive, and
// states its process in it. So `troupe down` finds the supervisor without cluster.json.
// Thread-safe.
#ifndef TROUPE_CLI_CLUSTER_SUPERVISOR_LOCK_H_
#define TROUPE_CLI_CLUSTER_SUPERVISOR_LOCK_H_

#include <string>
#include <utility>

#include "base/status.h"
#include "cli/cluster/process_id.h"

namespace troupe {

std::string SupervisorLockPath(const std::string& folder);

// The destructor releases the lock.
class SupervisorLock {
 public:
  // Takes the lock and states this process in the file. FAILED_PRECONDITION if another supervisor
  // holds it.
  static StatusOr<SupervisorLock> Acquire(const std::string& folder);

  SupervisorLock(SupervisorLock&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ~SupervisorLock();

 private:
  explicit SupervisorLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

// Returns whether a supervisor of `folder` is alive.
bool SupervisorLives(const std::string& folder);

// Returns the process that the lock file states, after the check that it is alive and that its
// command line is `troupe supervise --data-dir` with this folder. NOT_FOUND if nobody holds the
// lock; FAILED_PRECONDITION, with what does not fit, if the process cannot be relied on.
StatusOr<ProcessId> FindSupervisor(const std::string& folder);

// Returns whether FindSupervisor returns `process`. Does not try the lock, and so never keeps a
// supervisor that starts from it, unless the file states this process.
bool IsSupervisorOf(const std::string& folder, const ProcessId& process);

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_SUPERVISOR_LOCK_H_
