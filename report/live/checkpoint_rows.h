// The checkpoints of a job's page. Pure.
#ifndef TROUPE_REPORT_LIVE_CHECKPOINT_ROWS_H_
#define TROUPE_REPORT_LIVE_CHECKPOINT_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "report/markup.h"
#include "troupe/v1/checkpoint.pb.h"

namespace troupe {

// Draws a section with a table of `checkpoints`, which are given oldest first, newest first.
// `error`: why they are not known; else empty. `now_ns`: in nanoseconds since the Unix epoch.
void DrawCheckpoints(const std::vector<v1::CheckpointRecord>& checkpoints, const std::string& error,
                     int64_t now_ns, Markup* page);

}  // namespace troupe

#endif  // TROUPE_REPORT_LIVE_CHECKPOINT_ROWS_H_
