#include "plan/job/key_places.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "base/text/printable.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

constexpr size_t kNowhere = std::string_view::npos;

// Whether `path` begins with a key of a job; other requests have fields too.
bool IsOfJob(std::string_view path) {
  const std::string first(path.substr(0, path.find_first_of(".[")));
  return v1::JobSpec::descriptor()->FindFieldByName(first) != nullptr;
}

// Returns where `text` has `name` as a whole, and not as a part of another name.
size_t FindWhole(std::string_view text, std::string_view name) {
  const auto continues = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  for (size_t at = text.find(name); at != kNowhere; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool begins = at == 0 || (!continues(text[at - 1]) && text[at - 1] != '.');
    if (begins && (end == text.size() || !continues(text[end]))) return at;
  }
  return kNowhere;
}

// Returns where `text` names the key `path`, by the whole path or by its last part, which in some
// keys is a common word and then no name.
size_t FindKeyName(std::string_view text, std::string_view path) {
  const size_t dot = path.rfind('.');
  if (dot == kNowhere || path.find('[') != kNowhere) return kNowhere;
  const std::string_view last = path.substr(dot + 1);
  const bool is_common = last.find('_') == kNowhere;
  return std::min(FindWhole(text, path), is_common ? kNowhere : FindWhole(text, last));
}

// Returns the place of the stated key that `text` names first, or null.
const std::string* PlaceOfNamedKey(const KeyPlaces& places, std::string_view text) {
  const std::string* place = nullptr;
  size_t first = kNowhere;
  for (const auto& [path, stated_at] : places) {
    const size_t at = FindKeyName(text, path);
    if (at >= first) continue;
    first = at;
    place = &stated_at;
  }
  return place;
}

// Returns the place of the innermost list or section around `path` that is stated, else that of the
// whole file, or null.
const std::string* PlaceAround(const KeyPlaces& places, std::string_view path) {
  while (!path.empty()) {
    const size_t end = path.find_last_of(".[");
    path = path.substr(0, end == kNowhere ? 0 : end);
    if (const auto found = places.find(path); found != places.end()) return &found->second;
  }
  return nullptr;
}

// Returns " (job.yaml:3:5)", the place for `violation`, or an empty text if there is none.
std::string PlaceText(const KeyPlaces& places, const Violation& violation) {
  const std::string_view field = violation.field;
  if (!IsOfJob(field)) return "";
  const auto stated = places.find(field);
  const std::string* place = stated == places.end() ? nullptr : &stated->second;
  // The key of a list's entry belongs to the list, whatever else the text names.
  const bool is_in_list = field.find('[') != kNowhere;
  if (place == nullptr && !is_in_list) place = PlaceOfNamedKey(places, violation.description);
  if (place == nullptr) place = PlaceAround(places, field);
  return place == nullptr ? "" : PrintableLine(fmt::format(" ({})", *place));
}

}  // namespace

Status WithPlaces(const Status& status, const KeyPlaces& places) {
  std::vector<Violation> violations = ViolationsOf(status);
  if (violations.empty()) return status;
  std::string message(Message(status));
  size_t from = 0;
  for (Violation& violation : violations) {
    const std::string line = fmt::format("{} {}", violation.field, violation.description);
    const std::string place = PlaceText(places, violation);
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
