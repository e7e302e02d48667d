// The causes of failures. A rank attaches its cause to the status, where the status code alone does
// not name it, and reports it to the coordinator. The coordinator has causes of its own, and
// records the cause of each group epoch that failed (v1.Failure). Users see these words in
// receipts, events and `troupe describe`.
#ifndef TROUPE_BASE_FAILURE_CAUSE_H_
#define TROUPE_BASE_FAILURE_CAUSE_H_

#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

// The one list of causes; no other product code writes these words. A worker reports those of the
// first group, the coordinator finds those of the second.
namespace cause {

// Loss or gradient is not finite and the job is to fail then. The same step would fail again.
inline constexpr std::string_view kNonfinite = "NONFINITE";
// The data are not those that the job began with, differ between hosts, or are no data for the job.
inline constexpr std::string_view kData = "DATA";
// A collective exceeded its time limit, or no rank reported a step for too long.
inline constexpr std::string_view kHang = "HANG";
// A collective failed: another rank is gone or runs a different operation.
inline constexpr std::string_view kCollective = "COLLECTIVE";
// The device failed, or this process can no longer use it: after a fault in a kernel every call in
// its CUDA context fails. Only another process may be able to use the device again.
inline constexpr std::string_view kDeviceFault = "DEVICE_FAULT";
// No message of the coordinator arrived within the lifetime of the rank's ticket.
inline constexpr std::string_view kTicketExpired = "TICKET_EXPIRED";
// The job's checkpoint folder, its data, model.from or checkpoint.initial_load do not exist on this
// host or cannot be read, or hosts do not see each other's files.
inline constexpr std::string_view kStorage = "STORAGE";
// The job's checkpoint folder is full, for whichever host writes there.
inline constexpr std::string_view kFolderFull = "FOLDER_FULL";
// A path of the job leaves the root beneath which its namespace may open files.
inline constexpr std::string_view kPathOutsideRoot = "PATH_OUTSIDE_ROOT";
// The host's /dev/shm has no room for the rank's communication with other ranks.
inline constexpr std::string_view kSharedMemory = "SHARED_MEMORY";

// The rank reported a failure without a cause.
inline constexpr std::string_view kRankFailed = "RANK_FAILED";
// The rank's process ended by itself or was killed, and its worker reported no cause.
inline constexpr std::string_view kRankCrashed = "RANK_CRASHED";
// The rank's process stopped although nobody had asked it to, or its worker reconnected without it.
inline constexpr std::string_view kRankLost = "RANK_LOST";
// The worker's connection was lost, or it did not come back after the coordinator's restart.
inline constexpr std::string_view kWorkerLost = "WORKER_LOST";
// The worker's daemon was asked to stop, and reported it.
inline constexpr std::string_view kWorkerStopped = "WORKER_STOPPED";
// A rank was not ready within the time limit of a start.
inline constexpr std::string_view kStartTimeout = "START_TIMEOUT";
// The ranks are ready at different steps.
inline constexpr std::string_view kRestoreMismatch = "RESTORE_MISMATCH";
// The ranks begin at a step that is not before the job's last one.
inline constexpr std::string_view kNothingToDo = "NOTHING_TO_DO";
// A worker cannot write its part of checkpoints, or the save after the last step hangs.
inline constexpr std::string_view kCheckpointFailed = "CHECKPOINT_FAILED";
// The last checkpoint could not be written in time; the workers keep images of the ranks' state.
inline constexpr std::string_view kFinalCheckpointUnwritable = "FINAL_CHECKPOINT_UNWRITABLE";
// A rank found the checkpoint damaged from which it was to restore.
inline constexpr std::string_view kBadCheckpoint = "BAD_CHECKPOINT";
// A rank found the image damaged from which it was to restore, or its worker did not come back.
inline constexpr std::string_view kBadImage = "BAD_IMAGE";
// Every checkpoint of the job is quarantined.
inline constexpr std::string_view kNoRestorableCheckpoint = "NO_RESTORABLE_CHECKPOINT";
// The job's own faults exceeded fault_tolerance.max_restarts.
inline constexpr std::string_view kRestartBudget = "RESTART_BUDGET";

}  // namespace cause

// Attaches `cause` to `status`; OK stays OK. Annotate keeps the cause.
Status WithCause(Status status, std::string_view cause);

// Returns the cause that WithCause attached; empty if there is none.
std::string AttachedCause(const Status& status);

}  // namespace troupe

#endif  // TROUPE_BASE_FAILURE_CAUSE_H_
