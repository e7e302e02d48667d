// Status and StatusOr of the whole product (absl's), with std types at the interfaces.
//
// Debian's absl has its own string_view: this header is the one place that converts. Our code
// throws nothing; a function that can fail returns Status or StatusOr. Bad data from users and
// peers is a Status that names the field, the value and the relation that failed; TROUPE_CHECK
// (base/check.h) is for our own bugs.
#ifndef TROUPE_BASE_STATUS_H_
#define TROUPE_BASE_STATUS_H_

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace troupe {

using Status = absl::Status;
using StatusCode = absl::StatusCode;
template <typename T>
using StatusOr = absl::StatusOr<T>;

inline Status OkStatus() { return absl::OkStatus(); }

// Returns the message of `status`; valid as long as `status` lives.
inline std::string_view Message(const Status& status) {
  return {status.message().data(), status.message().size()};
}

// Returns "INVALID_ARGUMENT: message", for logs and the command line.
std::string ToString(const Status& status);

inline Status MakeStatus(StatusCode code, std::string_view message) {
  return Status(code, absl::string_view(message.data(), message.size()));
}

// Returns the same code and payloads with `prefix: ` before the message; OK unchanged.
Status Annotate(const Status& status, std::string_view prefix);

// Defines InvalidArgument("rank {} is not below {}", rank, ranks), and so on for the codes in use.
#define TROUPE_STATUS_MAKER(name, code)                                        \
  template <typename... Args>                                                  \
  Status name(fmt::format_string<Args...> format, Args&&... args) {            \
    return MakeStatus(code, fmt::format(format, std::forward<Args>(args)...)); \
  }
TROUPE_STATUS_MAKER(Cancelled, StatusCode::kCancelled)
TROUPE_STATUS_MAKER(InvalidArgument, StatusCode::kInvalidArgument)
TROUPE_STATUS_MAKER(DeadlineExceeded, StatusCode::kDeadlineExceeded)
TROUPE_STATUS_MAKER(NotFound, StatusCode::kNotFound)
TROUPE_STATUS_MAKER(AlreadyExists, StatusCode::kAlreadyExists)
TROUPE_STATUS_MAKER(PermissionDenied, StatusCode::kPermissionDenied)
TROUPE_STATUS_MAKER(Unauthenticated, StatusCode::kUnauthenticated)
TROUPE_STATUS_MAKER(ResourceExhausted, StatusCode::kResourceExhausted)
TROUPE_STATUS_MAKER(FailedPrecondition, StatusCode::kFailedPrecondition)
TROUPE_STATUS_MAKER(Aborted, StatusCode::kAborted)
TROUPE_STATUS_MAKER(OutOfRange, StatusCode::kOutOfRange)
TROUPE_STATUS_MAKER(Unimplemented, StatusCode::kUnimplemented)
TROUPE_STATUS_MAKER(Internal, StatusCode::kInternal)
TROUPE_STATUS_MAKER(Unavailable, StatusCode::kUnavailable)
TROUPE_STATUS_MAKER(DataLoss, StatusCode::kDataLoss)
#undef TROUPE_STATUS_MAKER

// Returns the Status of a failed system call: "open /a/b: No such file or directory".
// `error_number` selects the code: ENOENT NOT_FOUND, EEXIST ALREADY_EXISTS, EACCES
// PERMISSION_DENIED, ENOSPC and EDQUOT RESOURCE_EXHAUSTED, else UNAVAILABLE.
Status ErrnoStatus(int error_number, std::string_view what);

}  // namespace troupe

#define TROUPE_CONCAT_INNER_(a, b) a##b
#define TROUPE_CONCAT_(a, b) TROUPE_CONCAT_INNER_(a, b)

#define TROUPE_RETURN_IF_ERROR(expression)                        \
  do {                                                            \
    if (::troupe::Status _status = (expression); !_status.ok()) { \
      return _status;                                             \
    }                                                             \
  } while (false)

// TROUPE_ASSIGN_OR_RETURN(auto x, F()) sets x to the value of F(), or returns its status.
#define TROUPE_ASSIGN_OR_RETURN(left, expression) \
  TROUPE_ASSIGN_OR_RETURN_IMPL_(TROUPE_CONCAT_(_status_or_, __LINE__), left, expression)
#define TROUPE_ASSIGN_OR_RETURN_IMPL_(temporary, left, expression) \
  auto temporary = (expression);                                   \
  if (!temporary.ok()) return std::move(temporary).status();       \
  left = std::move(temporary).value()

#endif  // TROUPE_BASE_STATUS_H_
