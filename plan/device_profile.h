// Device profiles: how fast a device and its links are, for estimates of devices that need not be
// present. Pure.
#ifndef TROUPE_PLAN_DEVICE_PROFILE_H_
#define TROUPE_PLAN_DEVICE_PROFILE_H_

#include <string_view>

#include "base/status.h"
#include "troupe/v1/device_profile.pb.h"

namespace troupe {

// The profile that the YAML `text` states; every key is required but attention_efficiency and the two rates of products,
// of which there is at least one. `file_name` is for messages. INVALID_ARGUMENT with lines "file:7: …"
// for every error found.
StatusOr<v1::DeviceProfile> ParseDeviceProfile(std::string_view text, std::string_view file_name);

// INVALID_ARGUMENT with every key that is absent or out of range.
Status CheckDeviceProfile(const v1::DeviceProfile& profile);

// The share of the peak that attention attains.
inline double AttentionEfficiency(const v1::DeviceProfile& profile) {
  return profile.has_attention_efficiency() ? profile.attention_efficiency()
                                            : profile.product_efficiency();
}

}  // namespace troupe

#endif  // TROUPE_PLAN_DEVICE_PROFILE_H_
