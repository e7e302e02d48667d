#include "plan/job/key_places.h"

#include <string_view>
#include <vector>

#include "base/text/printable.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

// Returns " (job.yaml:3:5)" for a key that is stated, else an empty text.
std::string PlaceText(const KeyPlaces& places, std::string_view field) {
  auto found = places.find(field);
  // An entry of a list may have the place of the list alone.
  if (found == places.end() && field.ends_with(']'))
    found = places.find(field.substr(0, field.rfind('[')));
  return found == places.end() ? "" : PrintableLine(fmt::format(" ({})", found->second));
}

}  // namespace

Status WithPlaces(const Status& status, const KeyPlaces& places) {
  std::vector<Violation> violations = ViolationsOf(status);
  if (violations.empty()) return status;
  std::string message(Message(status));
  size_t from = 0;
  for (Violation& violation : violations) {
    const std::string line = fmt::format("{} {}", violation.field, violation.description);
    const std::string place = PlaceText(places, violation.field);
    violation.description += place;
    const size_t at = message.find(line, from);
    if (at == std::string::npos) continue;  // the message was cut
    message.insert(at + line.size(), place);
    from = at + line.size() + place.size();
  }
  Status placed = MakeStatus(status.code(), message);
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { placed.SetPayload(url, payload); });
  SetViolations(violations, &placed);
  return placed;
}

}  // namespace troupe
