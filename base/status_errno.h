// The error number behind a Status, for the few callers to whom its code says too little: a folder
// that may not be written and one on a file system that is read-only are both PERMISSION_DENIED.
#ifndef TROUPE_BASE_STATUS_ERRNO_H_
#define TROUPE_BASE_STATUS_ERRNO_H_

#include <string>

#include "base/status.h"

namespace troupe {

// The payload in which ErrnoStatus keeps the number.
inline constexpr char kErrnoUrl[] = "troupe/errno";

// Returns the error number of a status that ErrnoStatus has made, also after Annotate; else 0.
inline int ErrnoOf(const Status& status) {
  const auto payload = status.GetPayload(kErrnoUrl);
  return payload ? std::stoi(std::string(*payload)) : 0;
}

}  // namespace troupe

#endif  // TROUPE_BASE_STATUS_ERRNO_H_
