// Writes a job's record, its reports and its events to the catalog. Pure.
#ifndef TROUPE_COORDINATOR_JOB_JOB_RECORD_H_
#define TROUPE_COORDINATOR_JOB_JOB_RECORD_H_

#include <string>
#include <string_view>

#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Appends an event to the job's stored events, adds the record to the writes and notifies the
// watchers. The events of a turn have ascending times, which differ by a nanosecond or more.
void RecordEvent(Job& job, std::string_view event, const std::string& message, Turn& turn);

// Adds the reports that are not durable yet to the turn's writes and acknowledges them to rank 0's
// worker.
void FlushReports(Job& job, Turn& turn);

// Adds the job's record to the turn's writes, together with the reports up to its step. Without
// them the record would be ahead of the history, and a restarted coordinator would ignore these
// reports as known when they are resent.
void SaveRecord(Job& job, Turn& turn);

// Acknowledges the durable reports to the worker of rank 0. REQUIRES: the job has a group.
void AcknowledgeReports(const Job& job, Turn& turn);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_JOB_RECORD_H_
