// The curves of a job over its steps and over time. Pure.
#ifndef TROUPE_REPORT_STEP_CHARTS_H_
#define TROUPE_REPORT_STEP_CHARTS_H_

#include "report/job_report.h"
#include "report/markup.h"

namespace troupe {

// Draws one chart for each figure of the job's steps, with marks for committed checkpoints and
// recoveries. A figure that no step has is left out; of MFU, the page then states how to get it.
void DrawStepCharts(const JobReport& report, Markup* page);

}  // namespace troupe

#endif  // TROUPE_REPORT_STEP_CHARTS_H_
