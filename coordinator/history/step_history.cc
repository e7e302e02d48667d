#include "coordinator/history/step_history.h"

#include <algorithm>

namespace troupe {

std::vector<int64_t> StepsToDrop(int64_t step, const std::vector<int64_t>& kept_every,
                                 const HistoryResolution& resolution) {
  std::vector<int64_t> dropped;
  int64_t age = resolution.newest;
  int64_t kept = resolution.thinning;
  // Beyond `age` only multiples of `kept` stay; steps that are no multiple of kept / thinning were
  // dropped before.
  while (step - age >= 1) {
    const int64_t old = step - age;
    const bool is_there = old % (kept / resolution.thinning) == 0;
    const bool stays =
        old % kept == 0 || std::any_of(kept_every.begin(), kept_every.end(), [&](int64_t interval) {
          return interval >= resolution.thinning && old % interval == 0;
        });
    if (is_there && !stays) dropped.push_back(old);
    age *= resolution.thinning;
    kept *= resolution.thinning;
  }
  return dropped;
}

}  // namespace troupe
