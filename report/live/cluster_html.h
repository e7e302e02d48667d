// The page of the cluster. Pure.
#ifndef TROUPE_REPORT_LIVE_CLUSTER_HTML_H_
#define TROUPE_REPORT_LIVE_CLUSTER_HTML_H_

#include <string>

#include "report/live/cluster_page_view.h"

namespace troupe {

// Returns the page with jobs, queue, workers and devices. Texts are cut where they would make it
// long: with names as the coordinator accepts them, a job adds at most 4 kB.
std::string ClusterHtml(const ClusterPageView& view);

}  // namespace troupe

#endif  // TROUPE_REPORT_LIVE_CLUSTER_HTML_H_
