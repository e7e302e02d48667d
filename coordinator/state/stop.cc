#include "coordinator/state/stop.h"

#include "coordinator/state/event_kind.h"

namespace troupe {

std::optional<Stop> StopOf(const v1::JobRecord& record) {
  const int64_t attempt = record.stop_attempt();
  if (record.leaves_workers()) return Stop{StopPurpose::kMove, attempt};
  if (record.grows()) return Stop{StopPurpose::kGrow, attempt};
  if (record.cancels_anyway()) return Stop{StopPurpose::kCancelAnyway, attempt};
  if (attempt != 0) return Stop{StopPurpose::kCancel, attempt};
  return std::nullopt;
}

void SetStop(const std::optional<Stop>& stop, v1::JobRecord* record) {
  record->set_stop_attempt(stop ? stop->attempt : 0);
  record->set_leaves_workers(stop && stop->purpose == StopPurpose::kMove);
  record->set_grows(stop && stop->purpose == StopPurpose::kGrow);
  record->set_cancels_anyway(stop && stop->purpose == StopPurpose::kCancelAnyway);
}

void StopAfterNextAttempt(StopPurpose purpose, v1::JobRecord* record) {
  SetStop(Stop{purpose, record->last_attempt() + 1}, record);
}

void SetStopped(v1::JobRecord* record) { record->set_stop_attempt(0); }

int64_t StopAttempt(const v1::JobRecord& record) { return record.stop_attempt(); }

bool StopsFor(StopPurpose purpose, const v1::JobRecord& record) {
  const std::optional<Stop> stop = StopOf(record);
  return stop && stop->purpose == purpose;
}

bool IsBeingCancelled(const v1::JobRecord& record) {
  return StopsFor(StopPurpose::kCancel, record) || StopsFor(StopPurpose::kCancelAnyway, record);
}

std::string_view CalledOffEvent(StopPurpose purpose) {
  switch (purpose) {
    case StopPurpose::kMove:
      return event::kMoveCalledOff;
    case StopPurpose::kGrow:
      return event::kGrowthCalledOff;
    case StopPurpose::kCancel:
    case StopPurpose::kCancelAnyway:
      return event::kCancelCalledOff;
  }
  return event::kCancelCalledOff;
}

}  // namespace troupe
