// Reads what a plugin describes of a device, of a client or of a topology.
#ifndef TROUPE_KERNELS_XLA_PJRT_DEVICE_FACTS_H_
#define TROUPE_KERNELS_XLA_PJRT_DEVICE_FACTS_H_

#include <pjrt_c_api.h>

#include "base/status.h"
#include "kernels/xla/pjrt/client.h"

namespace troupe::kernels::xla {

// Errors of the plugin. memory_bytes is set where the description has it, as those of libtpu's
// topologies have.
StatusOr<DeviceFacts> ReadDeviceFacts(const PJRT_Api& api, PJRT_DeviceDescription* description);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_DEVICE_FACTS_H_
