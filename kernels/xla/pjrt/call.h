// Calls through PJRT's C interface. The header pjrt_c_api.h comes from the wheel that
// kernels/xla/requirements.txt pins.
#ifndef TROUPE_KERNELS_XLA_PJRT_CALL_H_
#define TROUPE_KERNELS_XLA_PJRT_CALL_H_

#include <pjrt_c_api.h>

#include "base/status.h"

// Declares `name`, the arguments of a call, all zero but for their size, which shows the plugin
// which fields we know.
#define TROUPE_PJRT_ARGUMENTS(type, name) \
  type name = {};                         \
  name.struct_size = type##_STRUCT_SIZE

namespace troupe::kernels::xla {

// Returns the plugin's code and message, without white space at its end, and frees `error`. OK if
// that is null. UNKNOWN becomes INTERNAL.
Status TakeStatus(const PJRT_Api& api, PJRT_Error* error);

// Waits for `event`, destroys it and returns its status. The wait has no limit: PJRT has none, and
// a run of a program that hangs is ended with its process.
Status AwaitAndDestroy(const PJRT_Api& api, PJRT_Event* event);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_CALL_H_
