// The ranks of a job, with links to their logs. Pure.
#ifndef TROUPE_REPORT_LIVE_RANK_ROWS_H_
#define TROUPE_REPORT_LIVE_RANK_ROWS_H_

#include <optional>

#include "report/markup.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// Draws a section with a table of the ranks: where each runs, or ran last, and a link to its log.
void DrawRankTable(const v1::Job& job, Markup* page);

// Draws links to the logs of all ranks and of each; that of `chosen` (absent: all ranks) is marked.
void DrawLogLinks(const v1::Job& job, std::optional<int> chosen, Markup* page);

}  // namespace troupe

#endif  // TROUPE_REPORT_LIVE_RANK_ROWS_H_
