// Which events of a job are kept: of each kind the first and the newest, so that a kind that comes
// often (CHECKPOINT_COMMITTED) never displaces what is rare and says why (RANK_LOST). Pure.
#ifndef TROUPE_COORDINATOR_EVENT_HISTORY_H_
#define TROUPE_COORDINATOR_EVENT_HISTORY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "troupe/v1/catalog.pb.h"

namespace troupe {

inline constexpr int kFirstEventsKept = 8;
inline constexpr int kNewestEventsKept = 24;

struct CountedEvent {
  int64_t count = 0;                // of its kind so far, this one included
  std::optional<uint64_t> dropped;  // the number of an older one of its kind that goes
};

// Counts event `number`, of kind `event`, in the job's record.
CountedEvent CountEvent(const std::string& event, uint64_t number, v1::JobRecord* record);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_EVENT_HISTORY_H_
