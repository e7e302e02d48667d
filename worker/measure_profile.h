// A device profile of this host (plan/device_profile.h), measured: what `troupe plan --profile` reads.
#ifndef TROUPE_WORKER_MEASURE_PROFILE_H_
#define TROUPE_WORKER_MEASURE_PROFILE_H_

#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "troupe/v1/device_profile.pb.h"
#include "worker/attained_rates.h"
#include "worker/device_probe.h"

namespace troupe {

// Of one of `devices` devices that share this host's cores and memory evenly. Layers are timed on all devices at once
// (MeasureAttainedRates), memory and the start of an operation on all cores, the links between two threads of this
// process over UCX. One host cannot see a fabric: it is given the island's figures. Takes seconds.
StatusOr<v1::DeviceProfile> MeasureProfile(const HostPeak& peak, int devices,
                                            const AttainedRatesOptions& rates = {});

// As the YAML file that ParseDeviceProfile reads, with a comment on what was not measured.
std::string ToYaml(const v1::DeviceProfile& profile);

// Where `--measure-peak` leaves it.
inline constexpr const char* kProfileFile = "profile.yaml";

// What was measured of one of `devices` devices, in the first of `directories` that has a measured peak of this very
// processor beside such a profile; NOT_FOUND where none has.
StatusOr<v1::DeviceProfile> FindProfile(FileSystem& files,
                                        const std::vector<std::string>& directories, int devices);

}  // namespace troupe

#endif  // TROUPE_WORKER_MEASURE_PROFILE_H_
