// The path at which the log of a rank is stored.
#ifndef TROUPE_WORKER_SESSION_RANK_LOG_PATH_H_
#define TROUPE_WORKER_SESSION_RANK_LOG_PATH_H_

#include <string>

#include "worker/session/state.h"

namespace troupe::session {

// Returns "LOGS/JOB/rank-3.worker-0.log": the log of a rank while it ran on this worker. Workers
// may share the directory.
std::string RankLogPath(const Config& config, const std::string& job, int rank);

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_RANK_LOG_PATH_H_
