// The workers of the cluster's page. Pure.
#ifndef TROUPE_REPORT_LIVE_WORKER_ROWS_H_
#define TROUPE_REPORT_LIVE_WORKER_ROWS_H_

#include "report/live/cluster_page_view.h"
#include "report/markup.h"

namespace troupe {

// Draws a table that has what `troupe workers` has: a row for each worker, and in it a line for
// everything that is condemned, drained or set aside, and for each rank.
void DrawWorkers(const ClusterPageView& view, Markup* page);

}  // namespace troupe

#endif  // TROUPE_REPORT_LIVE_WORKER_ROWS_H_
