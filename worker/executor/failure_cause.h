// Why a rank failed, where the code alone does not say it: a word that travels with the status.
#ifndef TROUPE_WORKER_EXECUTOR_FAILURE_CAUSE_H_
#define TROUPE_WORKER_EXECUTOR_FAILURE_CAUSE_H_

#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

// Loss or gradient is not finite and the job shall fail then: the same step would do so again.
inline constexpr std::string_view kCauseNonfinite = "NONFINITE";
// The training data cannot be read or are not what the job says.
inline constexpr std::string_view kCauseData = "DATA";
// A collective waited longer than its limit.
inline constexpr std::string_view kCauseHang = "HANG";
// A collective failed: another rank is gone or does something else.
inline constexpr std::string_view kCauseCollective = "COLLECTIVE";
// The device failed, or this process has lost its hold on it (after a fault in a kernel every call of
// its CUDA context fails): only another process may use it again, if any.
inline constexpr std::string_view kCauseDevice = "DEVICE_FAULT";
// The coordinator was not heard for the lifetime of the rank's ticket.
inline constexpr std::string_view kCauseTicket = "TICKET_EXPIRED";
// The job's checkpoint folder is not there on this host, or hosts do not see one another's files.
inline constexpr std::string_view kCauseStorage = "STORAGE";

// `status` with its cause; OK stays OK. Annotate keeps it.
Status WithCause(Status status, std::string_view cause);

// What WithCause attached; empty if nothing.
std::string AttachedCause(const Status& status);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_FAILURE_CAUSE_H_
