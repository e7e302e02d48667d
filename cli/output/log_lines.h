// The lines of the logs of a job's ranks: their order in time, the part of them that a command
// shows, and those that are new since the last read. The classes are not thread-safe.
#ifndef TROUPE_CLI_OUTPUT_LOG_LINES_H_
#define TROUPE_CLI_OUTPUT_LOG_LINES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe {

struct LogLine {
  std::string text;
  int64_t time_ms = 0;  // since the Unix epoch; 0: no line before it has a time
};

// Returns the time at the start of a line, "2026-11-24T06:37:13.180Z", in milliseconds since the
// Unix epoch; absent if there is none. A time without Z, as earlier versions logged, counts as UTC.
std::optional<int64_t> LogTime(std::string_view line);

// Returns `lines`, one answer of the coordinator, with their times. A line without a time, such as
// one of a stack trace, has that of the line before; the first lines of an answer, if they have
// none, have the first time of the answer, or else `before_ms`, the time of the answer before. A
// mark of missing bytes, which begins the lines of a rank, has the time of the line after it.
std::vector<LogLine> WithTimes(std::vector<std::string> lines, int64_t before_ms);

// Whether the line states that the beginning of a rank's log is missing in its place: "… 120 bytes
// are missing here". False for the mark of a line that was cut.
bool MarksMissingBytes(std::string_view line);

struct LogSelection {
  std::optional<int64_t> since_ms;  // no line of an earlier time
  std::optional<int64_t> tail;      // at most this many lines, the last ones
  int64_t most_bytes = 256 << 20;   // size of the lines, with what it takes to keep them
};

enum class LogOrder {
  kTime,     // lines with the same time are in the order of their arrival
  kArrival,  // the lines of one rank, even if its clock went back
};

// Selects the last lines while they arrive. It never keeps more than twice `tail` and 1024 lines,
// and at most a quarter more than `most_bytes`.
class SelectedLogLines {
 public:
  SelectedLogLines(const LogSelection& selection, LogOrder order)
      : selection_(selection), order_(order) {}

  void Add(LogLine line);
  // Returns the selected lines, in order. Call it once, after all lines were added.
  std::vector<LogLine> Take();
  // After Take: the number of lines that `since_ms` and `tail` select, but that were dropped, the
  // first ones in order, because of `most_bytes`.
  int64_t left_out() const { return left_out_; }

 private:
  void Shorten();

  const LogSelection selection_;
  const LogOrder order_;
  std::vector<LogLine> lines_;
  int64_t ordered_ = 0;  // this many lines at the beginning are in order
  int64_t bytes_ = 0;
  int64_t left_out_ = 0;
};

// The end of a read of the logs.
enum class LogReadEnd {
  kComplete,        // with the lines of all ranks
  kWithoutWorkers,  // without those on workers that are away
  kFailed,          // with an error, after some of the lines
};

// Finds which lines of a read are new, by their texts. A line is new if there are more of it in
// this read than in the one before, in which lines of failed reads since then count too. A line
// that begins with a time is also not new if the last complete read before workers went away had
// as many of it.
//
// Limits follow. A line without a time is not new if an equal one, of any rank, left the ends of
// the logs since the read before. Lines without a time are new again when their worker comes back,
// and so are lines that were logged while workers were away if theirs is away afterwards. All lines
// of a worker that the job has left are new again if it returns there.
//
// It keeps about 40 bytes for each different line of two reads, of three while a worker is away.
class SeenLogLines {
 public:
  // Counts `line`, the next one of the read, and returns whether it is new. Marks of missing bytes
  // are not new after the first read that did not fail: they move with every line that is logged.
  bool IsNew(const std::string& line);
  void EndRead(LogReadEnd end);

 private:
  using Counts = std::unordered_map<size_t, int64_t>;  // by the hash of the text

  static int64_t CountOf(size_t hash, const Counts& counts);

  bool is_first_ = true;
  Counts now_;       // lines of the read in progress
  Counts before_;    // lines of the read before
  Counts complete_;  // lines of the last complete read; empty if that is the read before
};

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_LOG_LINES_H_
