// Records the faults of a turn against hosts (coordinator/state/blame.h) and brings set-aside hosts
// back by a burn-in.
//
// A burn-in is requested once its time has come and no rank holds a device of the worker. It ends
// if a rank is placed there because nothing else suffices. A fault with a checkpoint folder stores
// the folder with its identity as known to the job (FolderIdPath of checkpoint/format/folder.h),
// because success with another folder at the same path does not show that the host is sound.
#ifndef TROUPE_COORDINATOR_FAULTS_HOST_FAULTS_H_
#define TROUPE_COORDINATOR_FAULTS_HOST_FAULTS_H_

#include <optional>
#include <set>
#include <string>

#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"

namespace troupe {

// Records the failure that ended the job's group against the host or device that its cause blames
// (coordinator/faults/culprit.h), if the failure names a worker. `fault` has its weight and folder.
void LayToHost(const Job& job, const v1::Failure& failure, HostFault fault, Turn& turn);

// Records the failure against workers one of which has a broken link, in equal parts: the one that
// takes part in several such failures gets the most.
void LayBrokenLink(const Job& job, const v1::Failure& failure,
                   const std::set<std::string>& suspects, Turn& turn);

// Records a fault because `rank` could not write its part of a checkpoint.
void LayFailedWrite(const Job& job, int32_t rank, const std::string& reason, Turn& turn);

// Records a fault against record.doubted_by, which found the commit damaged while another reading
// found it whole.
void LayWrongReading(const Job& job, const v1::CheckpointRecord& record, const std::string& text,
                     Turn& turn);

// Withdraws the faults recorded for the job, because the job failed by its own fault.
void Forgive(const Job& job, Turn& turn);

// Requests the burn-ins that are due and gives up overdue ones. Call whenever the fleet or the
// queue has changed, after the queue was placed, and when NextBurnInTime has come.
void StartBurnIns(Turn& turn);
// Handles a new stream of `worker`: its burn-in or the answer may be lost with the old stream, so
// the next StartBurnIns requests it again.
void AskForBurnInAnew(const std::string& worker, Turn& turn);
void OnBurnInDone(const v1::BurnInDone& message, const std::string& worker, Turn& turn);
std::optional<MonotonicTime> NextBurnInTime(const Fleet& fleet);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_FAULTS_HOST_FAULTS_H_
