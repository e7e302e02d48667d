// The jobs of the cluster's page. Pure.
#ifndef TROUPE_REPORT_LIVE_JOB_ROWS_H_
#define TROUPE_REPORT_LIVE_JOB_ROWS_H_

#include "report/live/cluster_page_view.h"
#include "report/markup.h"

namespace troupe {

// Draws the jobs that wait for their turn, with what they wait for. Draws nothing if only jobs of
// some states are known.
void DrawQueue(const ClusterPageView& view, Markup* page);

// Draws links to the jobs of each state and namespace, and the table of all known jobs, which has
// what `troupe list` has.
void DrawJobs(const ClusterPageView& view, Markup* page);

}  // namespace troupe

#endif  // TROUPE_REPORT_LIVE_JOB_ROWS_H_
