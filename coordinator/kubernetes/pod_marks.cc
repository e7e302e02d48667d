#include "coordinator/kubernetes/pod_marks.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace troupe {
namespace {

// The most that the API server accepts.
constexpr size_t kMostPodNameBytes = 253;

bool IsLowerAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool HoldsDevice(const Fleet& fleet, const std::string& worker) {
  const auto lease = fleet.leases.lower_bound({worker, 0});
  return lease != fleet.leases.end() && lease->first.first == worker;
}

}  // namespace

std::vector<WorkerUse> WorkerUses(const CoordinatorState& state) {
  std::set<std::string> with_images;
  for (const auto& [id, job] : state.jobs)
    for (const v1::RankImage& image : job.images.images()) with_images.insert(image.worker());
  std::vector<WorkerUse> uses;
  uses.reserve(state.fleet.workers.size());
  for (const auto& [name, worker] : state.fleet.workers) {
    uses.push_back({.name = name,
                    .incarnation = worker.incarnation,
                    .is_busy = HoldsDevice(state.fleet, name) || with_images.contains(name)});
  }
  return uses;
}

// Parts of letters, digits and hyphens are joined by dots, and begin and end without a hyphen.
bool IsPodName(std::string_view name) {
  if (name.size() > kMostPodNameBytes) return false;
  char before = '.';
  for (const char c : name) {
    if (c != '.' && c != '-' && !IsLowerAlphanumeric(c)) return false;
    if (c == '.' && !IsLowerAlphanumeric(before)) return false;
    if (c == '-' && before == '.') return false;
    before = c;
  }
  return IsLowerAlphanumeric(before);
}

std::vector<PodWrite> DuePodWrites(const std::vector<WorkerUse>& workers, MonotonicTime now,
                                   PodMarks* marks) {
  PodMarks kept;
  std::vector<PodWrite> due;
  for (const WorkerUse& worker : workers) {
    const auto known = marks->find(worker.name);
    PodMark mark;
    // The pod of another life may be another pod.
    if (known != marks->end() && known->second.incarnation == worker.incarnation)
      mark = known->second;
    mark.incarnation = worker.incarnation;
    if (worker.is_busy) {
      mark.idle_since.reset();
    } else if (!mark.idle_since) {
      mark.idle_since = now;
    }
    const bool is_settled = worker.is_busy || now - *mark.idle_since >= kIdleDelay;
    const bool differs = mark.is_busy != worker.is_busy;
    if (is_settled && differs && !mark.has_no_pod && !mark.tries.Waits(now) &&
        IsPodName(worker.name))
      due.push_back({worker.name, worker.is_busy});
    kept.emplace(worker.name, mark);
  }
  *marks = std::move(kept);
  std::stable_partition(due.begin(), due.end(), std::mem_fn(&PodWrite::is_busy));
  return due;
}

void NotePodAnswer(const PodWrite& write, PodAnswer answer, MonotonicTime now, PodMarks* marks) {
  PodMark& mark = marks->at(write.pod);
  if (answer == PodAnswer::kRefused) return mark.tries.Fail(now);
  mark.tries.Reset();
  if (answer == PodAnswer::kNoPod) {
    mark.has_no_pod = true;
  } else {
    mark.is_busy = write.is_busy;
  }
}

}  // namespace troupe
