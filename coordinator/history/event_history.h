// Selects which events of a job are kept: the first and the newest of each kind. A frequent kind
// (CHECKPOINT_COMMITTED) thus never displaces a rare one that explains a failure (RANK_LOST). Pure.
#ifndef TROUPE_COORDINATOR_HISTORY_EVENT_HISTORY_H_
#define TROUPE_COORDINATOR_HISTORY_EVENT_HISTORY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "troupe/v1/catalog.pb.h"

namespace troupe {

inline constexpr int kFirstEventsKept = 8;
inline constexpr int kNewestEventsKept = 24;

struct CountedEvent {
  int64_t count = 0;                // events of its kind so far, including this one
  std::optional<uint64_t> dropped;  // number of an older event of its kind to delete
};

// Counts event `number` of kind `event` in the job's record.
CountedEvent CountEvent(const std::string& event, uint64_t number, v1::JobRecord* record);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_HISTORY_EVENT_HISTORY_H_
