// Decides which pods are marked as busy or idle, so that a smaller pool loses idle workers first. A
// worker has the name of its pod. Pure.
#ifndef TROUPE_COORDINATOR_KUBERNETES_POD_MARKS_H_
#define TROUPE_COORDINATOR_KUBERNETES_POD_MARKS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "coordinator/kubernetes/backoff.h"
#include "coordinator/machine/coordinator_state.h"

namespace troupe {

// A worker is busy while a rank holds one of its devices, and while a job would be restored from an
// image on its disk, which ends with the pod.
struct WorkerUse {
  std::string name;
  uint64_t incarnation = 0;
  bool is_busy = false;
};

// Returns the use of each known worker, ordered by name.
std::vector<WorkerUse> WorkerUses(const CoordinatorState& state);

// Whether a pod may have this name; such a name needs no escapes in a path.
bool IsPodName(std::string_view name);

// The known and the desired mark of a worker's pod.
struct PodMark {
  static constexpr Duration kFirstWait = std::chrono::seconds(1);
  static constexpr Duration kLastWait = std::chrono::minutes(5);

  uint64_t incarnation = 0;
  std::optional<bool> is_busy;              // as the pod is marked; absent: not known
  std::optional<MonotonicTime> idle_since;  // absent: it is busy
  bool has_no_pod = false;                  // this life of the worker
  Backoff tries{kFirstWait, kLastWait};
};

using PodMarks = std::map<std::string, PodMark>;  // by worker

struct PodWrite {
  std::string pod;
  bool is_busy = false;
  auto operator<=>(const PodWrite&) const = default;
};

// A worker whose job recovers or is followed by another one soon keeps its mark.
inline constexpr Duration kIdleDelay = std::chrono::seconds(5);

// Brings `marks` up to date with the workers, and returns the marks to write now: those of busy
// workers first, because their pods may be chosen for removal at any time. A worker without a pod
// is asked about again in its next life only.
std::vector<PodWrite> DuePodWrites(const std::vector<WorkerUse>& workers, MonotonicTime now,
                                   PodMarks* marks);

enum class PodAnswer { kWritten, kNoPod, kRefused };
// Notes the result of a write. REQUIRES: DuePodWrites returned it for `marks`.
void NotePodAnswer(const PodWrite& write, PodAnswer answer, MonotonicTime now, PodMarks* marks);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_KUBERNETES_POD_MARKS_H_
