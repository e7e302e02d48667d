// The text of `troupe workers`. Pure.
#ifndef TROUPE_CLI_OUTPUT_WORKER_TABLE_H_
#define TROUPE_CLI_OUTPUT_WORKER_TABLE_H_

#include <string>
#include <vector>

#include "cli/output/text_style.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

// Returns a table with a line for each worker, and below it lines about its ranks, and about what
// is condemned, drained or set aside there. It leaves out what is not known, as of a worker that
// has not reported since the coordinator started. Where the table is too wide, jobs, host and
// island are below their lines, and names are shortened. If a worker states an island, the last
// line explains the word.
std::string WorkerTableText(const std::vector<v1::WorkerStatus>& workers, const TextStyle& style);

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_WORKER_TABLE_H_
