// Reads the log files of ranks for the coordinator. Thread-safe.
#ifndef TROUPE_WORKER_DAEMON_RANK_LOGS_H_
#define TROUPE_WORKER_DAEMON_RANK_LOGS_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "troupe/v1/worker.pb.h"
#include "worker/session/state.h"

namespace troupe {

// Returns LogLines for `request`, in order, each well below gRPC's limit of a message, the last one
// marked. At most the last 4 MiB of each rank's log, with its rotated files, are sent, after a line
// that gives the number of bytes omitted ("… 120 bytes are missing here"), and 256 KiB of a line,
// before a line that gives the number of the others ("… the line above has 120 more bytes"). Ranks
// without a file here have no lines. Of the ranks in `running`, which have not ended, a last line
// without a newline is not sent: more of it may follow.
std::vector<v1::WorkerMessage> ReadRankLogs(FileSystem& files, const session::Config& config,
                                            const v1::ReadLogs& request,
                                            const std::set<int>& running);

// Removes the logs, flight records and traces of the job's ranks on this worker. The job has left
// the catalog; a file that was written after `before_ns` of the wall clock belongs to another job
// of that name and is kept. OK if there are no files.
Status RemoveRankLogs(FileSystem& files, const session::Config& config, const std::string& job,
                      int64_t before_ns);

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_RANK_LOGS_H_
