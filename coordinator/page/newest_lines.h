// The newest lines of the logs of a job's ranks, selected while they arrive. Pure; not thread-safe.
#ifndef TROUPE_COORDINATOR_PAGE_NEWEST_LINES_H_
#define TROUPE_COORDINATOR_PAGE_NEWEST_LINES_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

enum class LinesOrder {
  kArrival,  // the lines of one rank
  kTime,     // the lines of several ranks, one rank after the other, in the order of their times
};

class NewestLines {
 public:
  // A line is cut to this many bytes.
  static constexpr size_t kMostLineBytes = 4096;

  NewestLines(size_t most_lines, LinesOrder order) : most_lines_(most_lines), order_(order) {}

  // A line without a time at its start has that of the line before.
  void Add(std::string_view line);

  // Returns the newest lines, in order. Call it once, after all lines were added.
  std::vector<std::string> Take();
  // After Take: the number of lines that are left out.
  size_t left_out() const { return added_ - shown_; }

 private:
  void Shorten(size_t most);

  const size_t most_lines_;
  const LinesOrder order_;
  std::vector<std::pair<std::string, std::string>> lines_;  // time and text
  std::string time_;                                        // that of the line before
  size_t added_ = 0;
  size_t shown_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_PAGE_NEWEST_LINES_H_
