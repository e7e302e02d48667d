// The cause of a rank's failure, where the status code alone does not say it: a word attached to
// the status.
#ifndef TROUPE_WORKER_EXECUTOR_FAILURE_CAUSE_H_
#define TROUPE_WORKER_EXECUTOR_FAILURE_CAUSE_H_

#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

// Loss or gradient is not finite and the job is to fail then. The same step would fail again.
inline constexpr std::string_view kCauseNonfinite = "NONFINITE";
// The training data cannot be read or differ from the job's description.
inline constexpr std::string_view kCauseData = "DATA";
// A collective exceeded its time limit.
inline constexpr std::string_view kCauseHang = "HANG";
// A collective failed: another rank is gone or runs a different operation.
inline constexpr std::string_view kCauseCollective = "COLLECTIVE";
// The device failed, or this process can no longer use it: after a fault in a kernel every call in
// its CUDA context fails. Only another process may be able to use the device again.
inline constexpr std::string_view kCauseDevice = "DEVICE_FAULT";
// No message of the coordinator arrived within the lifetime of the rank's ticket.
inline constexpr std::string_view kCauseTicket = "TICKET_EXPIRED";
// The job's checkpoint folder does not exist on this host, or hosts do not see each other's files.
inline constexpr std::string_view kCauseStorage = "STORAGE";

// Attaches `cause` to `status`; OK stays OK. Annotate keeps the cause.
Status WithCause(Status status, std::string_view cause);

// Returns the cause that WithCause attached; empty if there is none.
std::string AttachedCause(const Status& status);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_FAILURE_CAUSE_H_
