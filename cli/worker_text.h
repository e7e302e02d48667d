// Formats a worker for `troupe workers`. Pure.
#ifndef TROUPE_CLI_WORKER_TEXT_H_
#define TROUPE_CLI_WORKER_TEXT_H_

#include <string>

#include "troupe/v1/service.pb.h"

namespace troupe {

// Returns one line without its newline. It leaves out what is not known, as of a worker that has
// not reported since the coordinator started.
std::string WorkerText(const v1::WorkerStatus& worker);

}  // namespace troupe

#endif  // TROUPE_CLI_WORKER_TEXT_H_
