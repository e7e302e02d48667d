// The page of a job. Pure.
#ifndef TROUPE_REPORT_LIVE_JOB_HTML_H_
#define TROUPE_REPORT_LIVE_JOB_HTML_H_

#include <cstdint>
#include <string>
#include <vector>

#include "report/report_html.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

struct JobView {
  std::string caller;  // "viewer/ann"; empty: callers have no identity
  int64_t now_ns = 0;  // nanoseconds since the Unix epoch
  std::string version;
  JobReport report;
  std::vector<v1::CheckpointRecord> checkpoints;  // oldest first
  // The reasons why parts are not there; empty: they are, or the job has none.
  std::string checkpoints_error, steps_error, receipt_error, trace_error;
};

// Returns the page: state and reasons first, then what `troupe report` draws, then checkpoints and
// ranks with links to their logs. That of a job that has ended is final, unless checkpoints, steps
// or the receipt are missing for a reason.
std::string JobHtml(const JobView& view);

}  // namespace troupe

#endif  // TROUPE_REPORT_LIVE_JOB_HTML_H_
