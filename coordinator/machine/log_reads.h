// Reads of log lines: the request goes to the workers that have, or had, the ranks of the job's
// newest group, and the lines are passed on as they arrive. Pure; none of this state is durable.
#ifndef TROUPE_COORDINATOR_MACHINE_LOG_READS_H_
#define TROUPE_COORDINATOR_MACHINE_LOG_READS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "coordinator/state/event.h"
#include "coordinator/state/fleet.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"
#include "troupe/v1/service.pb.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

struct PendingLogs {
  CallId call = 0;
  std::set<WorkerLife> outstanding;  // workers that have not sent their last lines
  MonotonicTime deadline;
};

struct LogReads {
  uint64_t last_request = 0;
  std::map<uint64_t, PendingLogs> pending;  // by request number
};

// Requests the lines, or ends the call: FAILED_PRECONDITION while no worker that has some is
// connected, NOT_FOUND for a rank that the job does not have. A job that never ran has no lines.
void AskForLogs(const Job& job, CallId call, const v1::ReadJobLogsRequest& request, LogReads* reads,
                Turn& turn);

// REQUIRES: `sender` was asked and has not sent its last lines (JudgeMessage).
void OnLogLines(const v1::LogLines& lines, const WorkerLife& sender, LogReads* reads, Turn& turn);

// Ends the calls that have passed their deadlines.
void ExpireLogs(LogReads* reads, Turn& turn);
void AbandonLogs(CallId call, LogReads* reads);
std::optional<MonotonicTime> NextLogDeadline(const LogReads& reads);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_MACHINE_LOG_READS_H_
