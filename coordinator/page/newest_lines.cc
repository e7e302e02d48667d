#include "coordinator/page/newest_lines.h"

#include <algorithm>

#include "base/text/utf8.h"

namespace troupe {
namespace {

// Returns the time at the start of a line, "2026-11-24T06:37:13.180Z", whose texts have the order
// of the times; empty if there is none.
std::string_view TimeAtStart(std::string_view line) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:dd.dddZ";
  if (line.size() < kForm.size()) return {};
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool is_digit = line[i] >= '0' && line[i] <= '9';
    if (kForm[i] == 'd' ? !is_digit : line[i] != kForm[i]) return {};
  }
  return line.substr(0, kForm.size());
}

// Whether the line is a worker's mark that the beginning of a rank's log is missing, before the
// lines of that rank.
bool BeginsRank(std::string_view line) {
  return line.starts_with("… ") && line.ends_with(" bytes are missing here");
}

// Returns the line, cut between two characters.
std::string CutLine(std::string_view line) {
  if (line.size() <= NewestLines::kMostLineBytes) return std::string(line);
  const std::string_view kept = line.substr(0, NewestLines::kMostLineBytes);
  return std::string(kept.substr(0, WellFormedPrefix(kept))) + " …";
}

}  // namespace

void NewestLines::Add(std::string_view line) {
  if (order_ == LinesOrder::kTime) {
    if (const std::string_view time = TimeAtStart(line); !time.empty()) time_ = time;
    if (BeginsRank(line)) time_.clear();
  }
  lines_.emplace_back(time_, CutLine(line));
  ++added_;
  if (lines_.size() >= 2 * most_lines_ + 1024) Shorten(most_lines_);
}

void NewestLines::Shorten(size_t most) {
  std::ranges::stable_sort(
      lines_, {}, [](const auto& line) -> const auto& { return line.first; });
  if (lines_.size() > most)
    lines_.erase(lines_.begin(), lines_.end() - static_cast<std::ptrdiff_t>(most));
}

std::vector<std::string> NewestLines::Take() {
  Shorten(most_lines_);
  shown_ = lines_.size();
  std::vector<std::string> texts;
  for (auto& [time, text] : lines_) texts.push_back(std::move(text));
  lines_.clear();
  return texts;
}

}  // namespace troupe
