// The engine's state of one communicator. All members but the constants are guarded by the engine's
// mutex.
#ifndef TROUPE_COLLECTIVE_GROUP_H_
#define TROUPE_COLLECTIVE_GROUP_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collective/algorithm/choice.h"
#include "collective/algorithm/operation.h"
#include "collective/digest.h"
#include "collective/scope.h"
#include "collective/statistics.h"
#include "collective/tag_seals.h"

namespace troupe::collective_internal {

// Totals of one (operation, purpose) of a group.
struct Totals {
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t nanoseconds = 0;
  std::array<uint64_t, kCollectiveDurationBounds.size() + 1> duration_counts{};
};

struct Group {
  Group(std::string group_axis, std::string group_name, Purpose default_purpose,
        std::vector<int> ranks, int own)
      : axis(std::move(group_axis)),
        name(std::move(group_name)),
        purpose(default_purpose),
        global_ranks(std::move(ranks)),
        rank(own),
        digest(name) {}

  int size() const { return static_cast<int>(global_ranks.size()); }

  const std::string axis;
  const std::string name;
  const Purpose purpose;
  const std::vector<int> global_ranks;
  const int rank;  // own rank in the group

  Scope scope = Scope::kUnknown;
  const TagSeals* seals = nullptr;  // those of the network
  uint32_t tag_prefix = 0;          // unique among the groups of a rank; never 0
  uint64_t next_sequence = 0;
  int pending = 0;  // operations issued but not finished
  OperationDigest digest;

  // Cached step lists. There are few, so a linear search is faster than a map.
  struct CachedSteps {
    Algorithm algorithm;
    CollectiveOperation operation;
    int peer;
    std::unique_ptr<const StepList> list;
  };
  std::vector<CachedSteps> cached_steps;

  std::array<std::array<Totals, kPurposes>, kCollectiveOperations> totals{};

  // Set by an abort: the oldest operation that a thread was waiting for at that time.
  std::optional<CollectiveFlight> aborted_flight;
};

}  // namespace troupe::collective_internal

#endif  // TROUPE_COLLECTIVE_GROUP_H_
