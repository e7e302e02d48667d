// The file system from which a rank's communication libraries allocate shared memory, /dev/shm. In
// a container it is small unless the container is given more, and the libraries do not name it in
// their errors.
#ifndef TROUPE_WORKER_RANK_SHARED_MEMORY_H_
#define TROUPE_WORKER_RANK_SHARED_MEMORY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

// Bytes that UCX allocates when a rank opens its transport; measured with UCX 1.13.
inline constexpr int64_t kRankSharedBytes = 4'300'000;
// Bytes that NCCL allocates for a connection between two GPUs of a host, at most.
inline constexpr int64_t kNcclConnectionBytes = 9'600'000;

struct SharedMemory {
  std::string path;         // empty: the transport uses none
  int64_t total_bytes = 0;  // 0: without a limit
  int64_t free_bytes = 0;
};

// Returns whether UCX allocates shared memory as files, given the value of UCX_TLS, which may be
// null. Pure.
bool UsesSharedFiles(const char* transports);

// Looks at the directory in which UCX allocates, $UCX_POSIX_DIR or /dev/shm. The path is empty if
// UCX_TLS excludes the transport or the directory cannot be examined, so that UCX decides alone.
SharedMemory ProbeSharedMemory();

// Checks that `memory` has room for the ranks of one worker. The error names the path, its size and
// the need, and has the cause SHARED_MEMORY: FAILED_PRECONDITION if the ranks never fit,
// RESOURCE_EXHAUSTED if too little is free now. Pure.
Status CheckSharedMemory(const SharedMemory& memory, int ranks);

// Returns the failure of a start, explained and with the cause SHARED_MEMORY if it came from NCCL
// while `memory` had no room for a connection. Other statuses are returned unchanged. Pure.
Status ExplainBySharedMemory(Status status, const SharedMemory& memory);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_SHARED_MEMORY_H_
