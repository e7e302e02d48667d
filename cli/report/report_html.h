// The pages that `troupe report` and `troupe plan --html` write: each is one HTML file that needs
// no network. Pure.
#ifndef TROUPE_CLI_REPORT_REPORT_HTML_H_
#define TROUPE_CLI_REPORT_REPORT_HTML_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/report/page.h"
#include "plan/cost/step_time.h"
#include "troupe/v1/receipt.pb.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

struct JobReport {
  v1::Job job;
  std::vector<v1::StepEvent> steps;  // ascending; of a repeated step the last one
  std::vector<v1::JobEvent> events;
  std::optional<v1::Receipt> receipt;
  TextRows receipt_rows;       // the same as text, in the order of the table
  v1::TraceJobResponse trace;  // no ranks: none was made
};

std::string ReportHtml(const JobReport& report);

// `time`: the estimate for a device profile, if there is one. `fault_cost`: what a fault costs.
std::string PlanHtml(const v1::JobSpec& spec, const v1::Plan& plan, const StepTime* time,
                     const std::string& fault_cost);

}  // namespace troupe

#endif  // TROUPE_CLI_REPORT_REPORT_HTML_H_
