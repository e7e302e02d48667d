#include "worker/rank/shared_memory.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/failure_cause.h"

namespace troupe {
namespace {

constexpr const char* kDefaultDirectory = "/dev/shm";
constexpr std::string_view kAdvice =
    "give the host or container more (docker: --shm-size; Kubernetes: an emptyDir of medium Memory "
    "at this path)";

// For example "4.3 MB".
std::string Megabytes(int64_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string Describe(const SharedMemory& memory) {
  return fmt::format("{} has {}, of which {} are free", memory.path, Megabytes(memory.total_bytes),
                     Megabytes(memory.free_bytes));
}

// A file system that is mounted without a limit (size=0) shows neither a size nor free bytes.
bool IsUnlimited(const SharedMemory& memory) {
  return memory.path.empty() || memory.total_bytes == 0;
}

}  // namespace

bool UsesSharedFiles(const char* transports) {
  std::string_view rest = transports == nullptr ? "" : transports;
  if (rest.empty()) return true;
  const bool excludes = rest.front() == '^';
  if (excludes) rest.remove_prefix(1);
  bool named = false;
  while (!rest.empty()) {
    const std::string_view name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    for (const std::string_view group : {"all", "shm", "sm", "mm", "posix"}) {
      named = named || name == group;
    }
  }
  return named != excludes;
}

SharedMemory ProbeSharedMemory() {
  if (!UsesSharedFiles(std::getenv("UCX_TLS"))) return {};
  const char* const set = std::getenv("UCX_POSIX_DIR");
  const char* const path = set != nullptr && *set != '\0' ? set : kDefaultDirectory;
  struct statvfs found {};
  if (statvfs(path, &found) != 0) return {};
  const auto unit = static_cast<int64_t>(found.f_frsize);
  return {.path = path,
          .total_bytes = static_cast<int64_t>(found.f_blocks) * unit,
          .free_bytes = static_cast<int64_t>(found.f_bavail) * unit};
}

Status CheckSharedMemory(const SharedMemory& memory, int ranks) {
  if (IsUnlimited(memory)) return OkStatus();
  const int64_t need = std::max(1, ranks) * kRankSharedBytes;
  if (memory.total_bytes < need) {
    return WithCause(
        FailedPrecondition("{}, but {} of this worker need {} of shared memory: {}",
                           Describe(memory), ranks <= 1 ? "1 rank" : fmt::format("{} ranks", ranks),
                           Megabytes(need), kAdvice),
        cause::kSharedMemory);
  }
  if (memory.free_bytes >= kRankSharedBytes) return OkStatus();
  return WithCause(
      ResourceExhausted("{}, but a rank needs {} of shared memory: {}, or remove files that "
                        "processes left there",
                        Describe(memory), Megabytes(kRankSharedBytes), kAdvice),
      cause::kSharedMemory);
}

Status ExplainBySharedMemory(Status status, const SharedMemory& memory) {
  const bool of_nccl = Message(status).find("NCCL:") != std::string_view::npos;
  if (status.ok() || !of_nccl || !AttachedCause(status).empty() || IsUnlimited(memory) ||
      memory.free_bytes >= kNcclConnectionBytes) {
    return status;
  }
  return WithCause(
      ResourceExhausted("{}; {}, and NCCL needs up to {} for each connection: {}", Message(status),
                        Describe(memory), Megabytes(kNcclConnectionBytes), kAdvice),
      cause::kSharedMemory);
}

}  // namespace troupe
