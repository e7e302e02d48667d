#include "cli/output/log_lines.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <utility>

namespace troupe {
namespace {

// Consumes a number of `digits` digits and the character `end`; absent if `text` begins otherwise.
std::optional<int> ConsumeNumber(std::string_view* text, size_t digits, char end) {
  int number = 0;
  if (text->size() <= digits || (*text)[digits] != end) return std::nullopt;
  for (const char digit : text->substr(0, digits)) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = 10 * number + (digit - '0');
  }
  text->remove_prefix(digits + 1);
  return number;
}

int64_t BytesOf(const LogLine& line) {
  return static_cast<int64_t>(line.text.size() + sizeof(LogLine));
}

}  // namespace

std::optional<int64_t> LogTime(std::string_view line) {
  constexpr std::pair<size_t, char> kFields[] = {{4, '-'}, {2, '-'}, {2, 'T'},
                                                 {2, ':'}, {2, ':'}, {2, '.'}};
  int fields[std::size(kFields)] = {};
  for (size_t i = 0; i < std::size(kFields); ++i) {
    const auto field = ConsumeNumber(&line, kFields[i].first, kFields[i].second);
    if (!field) return std::nullopt;
    fields[i] = *field;
  }
  const bool has_zone = line.size() > 3 && line[3] == 'Z';
  const auto milliseconds = ConsumeNumber(&line, 3, has_zone ? 'Z' : ' ');
  const std::chrono::year_month_day date{std::chrono::year(fields[0]),
                                         std::chrono::month(static_cast<unsigned>(fields[1])),
                                         std::chrono::day(static_cast<unsigned>(fields[2]))};
  const bool is_time = fields[3] < 24 && fields[4] < 60 && fields[5] < 61;
  if (!milliseconds || !date.ok() || !is_time || (has_zone && !line.starts_with(' ')))
    return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const int64_t seconds = ((days * 24 + fields[3]) * 60 + fields[4]) * 60 + fields[5];
  return seconds * 1000 + *milliseconds;
}

bool MarksMissingBytes(std::string_view line) {
  return line.starts_with("… ") && line.ends_with(" bytes are missing here");
}

std::vector<LogLine> WithTimes(std::vector<std::string> lines, int64_t before_ms) {
  std::vector<std::optional<int64_t>> times;
  times.reserve(lines.size());
  for (const std::string& line : lines) times.push_back(LogTime(line));
  // Lines before the first time of an answer continue an answer of this or of another worker: the
  // time after them is nearer than that of another worker.
  const auto first = std::ranges::find_if(times, [](const auto& time) { return time.has_value(); });
  int64_t time = first != times.end() ? **first : before_ms;
  std::vector<LogLine> log;
  log.reserve(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    time = times[i].value_or(time);
    log.push_back({std::move(lines[i]), time});
  }
  for (size_t i = log.size(); i-- > 0;) {
    if (i + 1 < log.size() && MarksMissingBytes(log[i].text)) log[i].time_ms = log[i + 1].time_ms;
  }
  return log;
}

void SelectedLogLines::Add(LogLine line) {
  constexpr int64_t kSurplus = 1024;
  if (selection_.since_ms && line.time_ms < *selection_.since_ms) return;
  bytes_ += BytesOf(line);
  lines_.push_back(std::move(line));
  const bool has_many = selection_.tail && std::ssize(lines_) > 2 * *selection_.tail + kSurplus;
  if (has_many || bytes_ > selection_.most_bytes + selection_.most_bytes / 4) Shorten();
}

std::vector<LogLine> SelectedLogLines::Take() {
  Shorten();
  // The dropped lines come before all that are kept: `tail` may select fewer of them.
  if (selection_.tail) left_out_ = std::min(left_out_, *selection_.tail - std::ssize(lines_));
  return std::move(lines_);
}

void SelectedLogLines::Shorten() {
  if (order_ == LogOrder::kTime) {
    const auto middle = lines_.begin() + ordered_;
    std::ranges::stable_sort(middle, lines_.end(), {}, &LogLine::time_ms);
    std::ranges::inplace_merge(lines_, middle, {}, &LogLine::time_ms);
  }
  int64_t begin = 0;
  const int64_t surplus = selection_.tail ? std::ssize(lines_) - *selection_.tail : 0;
  for (; begin < surplus; ++begin) bytes_ -= BytesOf(lines_[begin]);
  for (; bytes_ > selection_.most_bytes; ++begin) {
    bytes_ -= BytesOf(lines_[begin]);
    ++left_out_;
  }
  lines_.erase(lines_.begin(), lines_.begin() + begin);
  ordered_ = std::ssize(lines_);
}

int64_t SeenLogLines::CountOf(size_t hash, const Counts& counts) {
  const auto found = counts.find(hash);
  return found == counts.end() ? 0 : found->second;
}

bool SeenLogLines::IsNew(const std::string& line) {
  const size_t hash = std::hash<std::string>()(line);
  const int64_t count = ++now_[hash];
  if (count <= CountOf(hash, before_)) return false;
  if (count <= CountOf(hash, complete_) && LogTime(line)) return false;
  return is_first_ || !MarksMissingBytes(line);
}

void SeenLogLines::EndRead(LogReadEnd end) {
  if (end == LogReadEnd::kFailed) {
    for (const auto& [hash, count] : now_) before_[hash] = std::max(before_[hash], count);
  } else {
    if (end == LogReadEnd::kComplete) complete_.clear();
    if (end == LogReadEnd::kWithoutWorkers && complete_.empty()) complete_ = std::move(before_);
    before_ = std::move(now_);
    is_first_ = false;
  }
  now_.clear();
}

}  // namespace troupe
