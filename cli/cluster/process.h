// Starts detached processes of a local cluster and checks whether they are alive.
#ifndef TROUPE_CLI_CLUSTER_PROCESS_H_
#define TROUPE_CLI_CLUSTER_PROCESS_H_

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/cluster/process_id.h"

namespace troupe {

// Returns the process with pid `pid`; absent if there is none, or if it is a zombie.
std::optional<ProcessId> FindProcess(pid_t pid);

// Returns whether exactly this process is alive; another one with a recycled pid does not count.
bool IsAlive(const ProcessId& process);

// Sends `signal` if the process is alive. A pidfd ensures that a recycled pid is never signalled.
void SignalProcess(const ProcessId& process, int signal);

// Sends `signal` to a process that StartDetached started, if it is alive, and to those that it has
// started in its group, as a script does that runs a program.
void SignalGroup(const ProcessId& process, int signal);

// Runs `arguments` (the first is the path of the binary) in its own session. It inherits no
// descriptors except /dev/null as input and `log_path`, opened for append, as output. The caller is
// its parent. REQUIRES: the process has one thread.
StatusOr<ProcessId> StartDetached(const std::vector<std::string>& arguments,
                                  const std::string& log_path);

// Returns the folder of the running binary.
StatusOr<std::string> BinaryFolder();

// Returns `count` distinct ports of 127.0.0.1 without a listener, outside the kernel's range for
// outgoing connections, so that a restarted process finds its port free.
StatusOr<std::vector<int>> FindFreePorts(int count);

// Returns whether a process can listen on `port` of 127.0.0.1 now.
bool IsPortFree(int port);

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_PROCESS_H_
