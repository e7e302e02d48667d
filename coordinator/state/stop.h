// The purpose for which a job's ranks stop together after a checkpoint. It is durable: only these
// functions read and write the fields of v1.JobRecord that hold it.
#ifndef TROUPE_COORDINATOR_STATE_STOP_H_
#define TROUPE_COORDINATOR_STATE_STOP_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "troupe/v1/catalog.pb.h"

namespace troupe {

enum class StopPurpose {
  kCancel,        // a user cancels the job, with a checkpoint
  kCancelAnyway,  // a user cancels the job, without the checkpoint if that fails
  kGrow,          // the job is placed on its submitted layout again
  kMove,          // the job leaves workers that are draining
};

struct Stop {
  StopPurpose purpose = StopPurpose::kCancel;
  // The ranks stop after this checkpoint attempt. 0 with kCancelAnyway: the job has done its last
  // step and ends with the final checkpoint. 0 with kGrow or kMove: the ranks have stopped, and the
  // job has not run again since. kCancel always has an attempt.
  int64_t attempt = 0;

  bool operator==(const Stop&) const = default;
};

// Returns nothing if the job's ranks stop for no purpose before its last step is saved.
std::optional<Stop> StopOf(const v1::JobRecord& record);
void SetStop(const std::optional<Stop>& stop, v1::JobRecord* record);

// Has the ranks stop for `purpose` after the attempt that is recorded next.
void StopAfterNextAttempt(StopPurpose purpose, v1::JobRecord* record);

// Notes that the ranks have stopped; the purpose of a job that continues is kept until it runs.
void SetStopped(v1::JobRecord* record);

// The attempt after which the ranks stop; 0: none.
int64_t StopAttempt(const v1::JobRecord& record);

bool StopsFor(StopPurpose purpose, const v1::JobRecord& record);

// Whether a user has cancelled the job, which ends with its next checkpoint.
bool IsBeingCancelled(const v1::JobRecord& record);

// The kind of the event that reports that the job does not do what it was to stop for.
std::string_view CalledOffEvent(StopPurpose purpose);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_STATE_STOP_H_
