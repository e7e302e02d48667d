// Device profiles: the rates of a device and of its links, from which the planner estimates devices
// that need not be present. Pure.
#ifndef TROUPE_PLAN_DEVICE_DEVICE_PROFILE_H_
#define TROUPE_PLAN_DEVICE_DEVICE_PROFILE_H_

#include <string_view>

#include "base/status.h"
#include "troupe/v1/device_profile.pb.h"

namespace troupe {

// Parses the YAML `text` of a profile. All keys are required except name, device_model,
// attention_efficiency and transfers_need_cores; of the two FLOP rates at least one is required. A
// device_model that begins with "TPU" is one of TpuModels().
// product_efficiency, the earlier name of matmul_efficiency, is accepted. `file_name` is used in
// messages only.
// INVALID_ARGUMENT with a line "file:7: …" for every parse error, or with the errors of
// CheckDeviceProfile. For a job file in its place, as YAML, JSON or the text form of a protobuf,
// one sentence states that.
StatusOr<v1::DeviceProfile> ParseDeviceProfile(std::string_view text, std::string_view file_name);

// INVALID_ARGUMENT with every key that is absent or out of range.
Status CheckDeviceProfile(const v1::DeviceProfile& profile);

// The fraction of the peak FLOPs that attention attains.
inline double AttentionEfficiency(const v1::DeviceProfile& profile) {
  return profile.has_attention_efficiency() ? profile.attention_efficiency()
                                            : profile.matmul_efficiency();
}

}  // namespace troupe

#endif  // TROUPE_PLAN_DEVICE_DEVICE_PROFILE_H_
