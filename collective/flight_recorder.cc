#include "collective/flight_recorder.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace troupe::collective_internal {
namespace {

// Enough operations to explain a failure; older ones serve traces only.
constexpr uint64_t kWrittenOperations = 1024;

std::string_view Name(RecordState state) {
  switch (state) {
    case RecordState::kPending:
      return "pending";
    case RecordState::kFinished:
      return "finished";
    case RecordState::kFailed:
      return "failed";
  }
  return "unknown";
}

double RoundedToMicroseconds(Duration time) { return std::round(ToSeconds(time) * 1e6) / 1e6; }

}  // namespace

void FlightRecorder::ForEach(const std::function<void(const Record&)>& visit) const {
  const uint64_t kept = std::min<uint64_t>(next_, records_.size());
  for (uint64_t number = next_ - kept; number < next_; ++number) {
    visit(records_[number % records_.size()]);
  }
}

nlohmann::ordered_json FlightRecorder::ToJson(
    MonotonicTime start, const std::function<std::vector<int>(uint64_t)>& awaited) const {
  nlohmann::ordered_json operations = nlohmann::ordered_json::array();
  const uint64_t kept = std::min<uint64_t>({next_, records_.size(), kWrittenOperations});
  for (uint64_t number = next_ - kept; number < next_; ++number) {
    const Record& record = records_[number % records_.size()];
    const bool pending = record.state == RecordState::kPending;
    nlohmann::ordered_json finished_seconds;
    if (!pending) finished_seconds = RoundedToMicroseconds(record.finished - start);
    operations.push_back({{"sequence", record.sequence},
                          {"operation", troupe::Name(record.operation)},
                          {"group", record.group->name},
                          {"axis", record.group->axis},
                          {"purpose", troupe::Name(record.purpose)},
                          {"bytes", record.bytes},
                          {"issued_seconds", RoundedToMicroseconds(record.issued - start)},
                          {"finished_seconds", finished_seconds},
                          {"state", Name(record.state)},
                          {"waiting_for_ranks", pending ? awaited(number) : record.awaited}});
  }
  return operations;
}

}  // namespace troupe::collective_internal
