// The page of a job's logs. Pure.
#ifndef TROUPE_REPORT_LIVE_LOGS_HTML_H_
#define TROUPE_REPORT_LIVE_LOGS_HTML_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "troupe/v1/service.pb.h"

namespace troupe {

struct LogsView {
  std::string caller;  // "viewer/ann"; empty: callers have no identity
  int64_t now_ns = 0;  // nanoseconds since the Unix epoch
  std::string version;
  v1::Job job;
  std::optional<int> rank;         // absent: of all ranks
  std::vector<std::string> lines;  // newest last
  size_t more_lines = 0;           // older ones, left out of `lines`
  std::string error;               // the reason why lines are missing, the newest or all
};

// Returns the page: links to the logs of all ranks and of each, and the lines, of each at most its
// first 2,000 characters. That of a job that has ended is final, unless there is an error.
std::string LogsHtml(const LogsView& view);

}  // namespace troupe

#endif  // TROUPE_REPORT_LIVE_LOGS_HTML_H_
