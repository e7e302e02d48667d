#include "coordinator/history/event_history.h"

#include <algorithm>

namespace troupe {

CountedEvent CountEvent(const std::string& event, uint64_t number, v1::JobRecord* record) {
  auto* const tallies = record->mutable_event_tallies();
  const auto found =
      std::find_if(tallies->begin(), tallies->end(),
                   [&](const v1::EventTally& tally) { return tally.event() == event; });
  v1::EventTally& tally = found != tallies->end() ? *found : *tallies->Add();
  tally.set_event(event);
  tally.set_count(tally.count() + 1);
  CountedEvent counted{tally.count(), std::nullopt};
  if (tally.count() <= kFirstEventsKept) return counted;
  if (tally.newest_size() == kNewestEventsKept) {
    counted.dropped = tally.newest(0);
    tally.mutable_newest()->erase(tally.newest().begin());
  }
  tally.add_newest(number);
  return counted;
}

}  // namespace troupe
