// The kind of devices of a job or a worker that names none. The kinds are the rows of
// device_traits.cc.
#ifndef TROUPE_PLAN_DEVICE_DEVICE_KIND_H_
#define TROUPE_PLAN_DEVICE_DEVICE_KIND_H_

#include <string_view>

namespace troupe {

// Equal to the default of the key `devices` (job.proto).
inline constexpr std::string_view kDefaultDeviceKind = "cpu";

}  // namespace troupe

#endif  // TROUPE_PLAN_DEVICE_DEVICE_KIND_H_
