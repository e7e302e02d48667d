// The figures at the top of the pages of jobs and plans. Pure.
#ifndef TROUPE_REPORT_FACTS_H_
#define TROUPE_REPORT_FACTS_H_

#include "plan/cost/step_time.h"
#include "report/job_report.h"
#include "report/page.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Leaves out what is not known. The duration is that from the job's creation to its end, or to its
// last event or step while it has not ended.
TextRows FactsOf(const JobReport& report);

// `time`: the estimate for the plan's device profile; null: there is none. REQUIRES: `spec` has its
// defaults.
TextRows FactsOf(const v1::JobSpec& spec, const v1::Plan& plan, const StepTime* time);

}  // namespace troupe

#endif  // TROUPE_REPORT_FACTS_H_
