// The data that the page of a job shows. Pure.
#ifndef TROUPE_REPORT_JOB_REPORT_H_
#define TROUPE_REPORT_JOB_REPORT_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "report/page.h"
#include "troupe/v1/receipt.pb.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

struct JobReport {
  v1::Job job;
  std::vector<v1::StepEvent> steps;  // ascending; of a repeated step the last one
  // The figures of all steps of the job so far, where `steps` are only some of them, among them the
  // first and the last. Either both are set, or `steps` are all.
  std::optional<int64_t> trained_tokens;
  std::optional<int64_t> all_steps;
  std::vector<v1::JobEvent> events;  // in the order of their time
  std::optional<v1::Receipt> receipt;
  TextRows receipt_rows;       // the same as text, in the order of the table
  int64_t now_ns = 0;          // the present, of a page that is live; 0: it is none
  v1::TraceJobResponse trace;  // no ranks: none was made
};

// Whether the step has no loss, because it had no target.
inline bool HasNoLoss(const v1::StepEvent& step) {
  return step.tokens() == 0 && std::isnan(step.loss());
}

// Whether no step has MFU although there are steps.
inline bool StepsLackMfu(const JobReport& report) {
  return !report.steps.empty() && std::ranges::none_of(report.steps, &v1::StepEvent::has_mfu);
}

// Stated once on a page where MFU is absent although there are steps: with the curves, or with the
// receipt where some curve has MFU.
inline constexpr char kPeakNotKnown[] =
    "MFU was not measured, because the peak of a device is not known. For processors, run "
    "troupe-worker --measure-peak --data-dir DIR once, before the workers start.";

}  // namespace troupe

#endif  // TROUPE_REPORT_JOB_REPORT_H_
