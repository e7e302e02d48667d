// Detached processes of a local cluster: starting them and asking whether they live.
#ifndef TROUPE_CLI_CLUSTER_PROCESS_H_
#define TROUPE_CLI_CLUSTER_PROCESS_H_

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/cluster/cluster_file.h"

namespace troupe {

// The process with number `pid`; none if there is none, or it has ended and waits to be reaped.
std::optional<ProcessId> FindProcess(pid_t pid);

// True while this very process lives: a recycled number does not count.
bool IsAlive(const ProcessId& process);

// Sends `signal` if the process lives; a recycled number is never signalled (checked through a pidfd).
void SignalProcess(const ProcessId& process, int signal);

// Runs `arguments` (the first is the path of the binary) in a session of its own with no inherited descriptors but
// /dev/null as input and `log_path`, appended to, as output. The caller is its parent. REQUIRES: one thread.
StatusOr<ProcessId> StartDetached(const std::vector<std::string>& arguments,
                                  const std::string& log_path);

// The folder of the running binary.
StatusOr<std::string> BinaryFolder();

// `count` different ports of 127.0.0.1 that nobody listens on, outside the range that the kernel gives to outgoing
// connections, so that a process finds its port free again when it is restarted.
StatusOr<std::vector<int>> FindFreePorts(int count);

// Whether a process may listen on `port` of 127.0.0.1 now.
bool IsPortFree(int port);

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_PROCESS_H_
