// What becomes of faults in a turn: they are laid to hosts (coordinator/blame.h) and recorded, and
// hosts that are set aside come back by a burn-in.
//
// A burn-in is asked for once its time has come and no rank holds a device of the worker. A rank
// that is placed there all the same, because nothing else suffices, ends it. A fault with a folder
// of checkpoints keeps it with the identity that the job knows of it (FolderIdPath of
// checkpoint/folder.h), for another folder at its place does not show that the host is sound.
#ifndef TROUPE_COORDINATOR_HOST_FAULTS_H_
#define TROUPE_COORDINATOR_HOST_FAULTS_H_

#include <optional>
#include <string>

#include "coordinator/job.h"
#include "coordinator/turn.h"

namespace troupe {

// Lays the failure that ended the job's group to the host or device that its cause blames
// (coordinator/culprit.h), if it names one.
void LayToHost(const Job& job, const v1::Failure& failure, double weight, Turn& turn);

// `rank` could not write its part of a checkpoint.
void LayFailedWrite(const Job& job, int32_t rank, const std::string& reason, Turn& turn);

// Another reading found the commit whole that its worker of record.doubted_by had found damaged.
void LayWrongReading(const Job& job, const v1::CheckpointRecord& record, const std::string& text,
                     Turn& turn);

// The job has failed by its own fault: what was laid to hosts on its account is withdrawn.
void Forgive(const Job& job, Turn& turn);

// Asks for the burn-ins that are due and gives up those that are overdue. To be called whenever the
// fleet or the queue has changed, after the queue was placed, and when NextBurnInTime has come.
void StartBurnIns(Turn& turn);
// `worker` has a new stream: its burn-in, or the answer, may be lost with the old one and is asked
// for anew by the next StartBurnIns.
void AskForBurnInAnew(const std::string& worker, Turn& turn);
void OnBurnInDone(const v1::BurnInDone& message, const std::string& worker, Turn& turn);
std::optional<MonotonicTime> NextBurnInTime(const Fleet& fleet);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_HOST_FAULTS_H_
