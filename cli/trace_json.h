// Traces of ranks as Chrome's and Perfetto's JSON (docs/traces.md). Pure.
#ifndef TROUPE_CLI_TRACE_JSON_H_
#define TROUPE_CLI_TRACE_JSON_H_

#include "cli/json_text.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// One process a rank and one lane (thread) each for its actions, operations, checkpoints and every
// axis's communication by purpose; collectives that overlap within one get further lanes. Times are
// microseconds since the first event, on the ranks' own clocks put onto the wall clock.
Json TraceToJson(const v1::TraceJobResponse& trace, const v1::Job& job);

}  // namespace troupe

#endif  // TROUPE_CLI_TRACE_JSON_H_
