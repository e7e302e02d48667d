// Identifies a process of this host for longer than its pid does.
#ifndef TROUPE_CLI_CLUSTER_PROCESS_ID_H_
#define TROUPE_CLI_CLUSTER_PROCESS_ID_H_

#include <sys/types.h>

#include <cstdint>

namespace troupe {

// A process and its start time, so that another process with a recycled pid is not mistaken for it.
struct ProcessId {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // ticks since boot; field 22 of /proc/PID/stat
  bool operator==(const ProcessId&) const = default;
};

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_PROCESS_ID_H_
