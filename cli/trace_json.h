// Converts rank traces to the JSON format of Chrome and Perfetto (docs/traces.md). Pure.
#ifndef TROUPE_CLI_TRACE_JSON_H_
#define TROUPE_CLI_TRACE_JSON_H_

#include "report/text/json_text.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// Each rank is a process with one lane (thread) each for its actions, operations, checkpoints and,
// by purpose, the communication of every axis; overlapping collectives of one lane get further
// lanes. Times are microseconds since the first event, from the ranks' own clocks converted to
// wall-clock time.
Json TraceToJson(const v1::TraceJobResponse& trace, const v1::Job& job);

}  // namespace troupe

#endif  // TROUPE_CLI_TRACE_JSON_H_
