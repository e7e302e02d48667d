// The pages that `troupe report` and `troupe plan --html` write: each is one HTML file that needs
// no network. Pure.
#ifndef TROUPE_REPORT_REPORT_HTML_H_
#define TROUPE_REPORT_REPORT_HTML_H_

#include <string>

#include "plan/cost/step_time.h"
#include "report/job_report.h"
#include "report/markup.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// Returns when the job was submitted and by whom, for the line below a page's headline.
std::string SubmissionText(const v1::Job& job);

// Draws what stands between the headline, which states why the job waits or failed, and the end of
// the page: sections whose ids stay the same from one version of the page to the next. They are
// summary, steps, step-time, pipeline, layout, stages, memory, events and receipt.
void DrawReport(const JobReport& report, Markup* page);

std::string ReportHtml(const JobReport& report);

// `time`: the estimate for a device profile, if there is one. `fault_cost`: what a fault costs.
// REQUIRES: `spec` has its defaults.
std::string PlanHtml(const v1::JobSpec& spec, const v1::Plan& plan, const StepTime* time,
                     const std::string& fault_cost);

}  // namespace troupe

#endif  // TROUPE_REPORT_REPORT_HTML_H_
