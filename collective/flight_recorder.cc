#include "collective/flight_recorder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

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

}  // namespace

std::string JsonString(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      json += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      json += c;
    }
  }
  return json + '"';
}

void FlightRecorder::ForEach(const std::function<void(const Record&)>& visit) const {
  const uint64_t kept = std::min<uint64_t>(next_, records_.size());
  for (uint64_t number = next_ - kept; number < next_; ++number) {
    visit(records_[number % records_.size()]);
  }
}

std::string FlightRecorder::ToJson(MonotonicTime start,
                                   const std::function<std::vector<int>(uint64_t)>& awaited) const {
  std::string json = "[";
  auto out = std::back_inserter(json);
  const uint64_t kept = std::min<uint64_t>({next_, records_.size(), kWrittenOperations});
  for (uint64_t number = next_ - kept; number < next_; ++number) {
    const Record& record = records_[number % records_.size()];
    fmt::format_to(out,
                   "{}\n  {{\"sequence\": {}, \"operation\": \"{}\", \"group\": {}, \"axis\": {}, "
                   "\"purpose\": "
                   "\"{}\", \"bytes\": {}, \"issued_seconds\": {:.6f}, ",
                   number == next_ - kept ? "" : ",", record.sequence,
                   troupe::Name(record.operation), JsonString(record.group->name),
                   JsonString(record.group->axis), troupe::Name(record.purpose), record.bytes,
                   ToSeconds(record.issued - start));
    if (record.state == RecordState::kPending) {
      fmt::format_to(out, "\"finished_seconds\": null");
    } else {
      fmt::format_to(out, "\"finished_seconds\": {:.6f}", ToSeconds(record.finished - start));
    }
    const std::vector<int> waiting =
        record.state == RecordState::kPending ? awaited(number) : record.awaited;
    fmt::format_to(out, ", \"state\": \"{}\", \"waiting_for_ranks\": [{}]}}", Name(record.state),
                   fmt::join(waiting, ", "));
  }
  return json + (kept > 0 ? "\n]" : "]");
}

}  // namespace troupe::collective_internal
