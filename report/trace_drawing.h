// The parts of a page that show a step as it ran, from the traces of its ranks. Pure.
#ifndef TROUPE_REPORT_TRACE_DRAWING_H_
#define TROUPE_REPORT_TRACE_DRAWING_H_

#include "report/markup.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// Draws the last step that every rank of `trace` has: the actions of each rank, and the time that
// it spent in each kind of action. Draws nothing if there is no such step.
void DrawTrace(const v1::TraceJobResponse& trace, Markup* page);

}  // namespace troupe

#endif  // TROUPE_REPORT_TRACE_DRAWING_H_
