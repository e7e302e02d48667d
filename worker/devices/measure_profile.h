// Measures a device profile of this host (plan/device/device_profile.h), which `troupe plan
// --profile` reads.
#ifndef TROUPE_WORKER_DEVICES_MEASURE_PROFILE_H_
#define TROUPE_WORKER_DEVICES_MEASURE_PROFILE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "collective/network.h"
#include "kernels/backend/backend.h"
#include "kernels/backend/backend_rates.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/worker.pb.h"
#include "worker/devices/attained_rates.h"
#include "worker/devices/device_probe.h"

namespace troupe {

// Profiles one of `devices` devices that share this host's cores and memory evenly. Layers are
// timed on all devices at once (MeasureAttainedRates), memory and the start of an operation on all
// cores, links between two threads of this process over UCX. One host cannot measure a fabric, so
// the fabric gets the island's figures. Takes seconds.
StatusOr<v1::DeviceProfile> MeasureProfile(const HostPeak& peak, int devices,
                                           const AttainedRatesOptions& rates = {});

// Makes the backend of one of this host's devices. `network` is that of its rank; null if there is
// only one.
using MakeDeviceBackend = std::function<StatusOr<std::unique_ptr<kernels::Backend>>(
    int device, CollectiveNetwork* network)>;

struct DeviceProfileOptions {
  kernels::BackendRatesOptions rates;
  // Bytes of the all-reduce that measures the bandwidth of a link.
  size_t large_bytes = size_t{1} << 28;
};

// Profiles one of several equal devices with their own memory (GPUs). The first is timed alone. The
// link is measured by all-reduces of the first two as ranks in threads of this process; for a
// single device between host threads, since its link will carry no traffic. The peak is the known
// one, or the rate that matmuls attain if none is known. Takes seconds.
StatusOr<v1::DeviceProfile> MeasureDeviceProfile(const std::vector<v1::Device>& devices,
                                                 const MakeDeviceBackend& make,
                                                 const DeviceProfileOptions& options = {});

// The model, number and versions of the devices that a profile was measured on. REQUIRES: at least
// one device.
std::string DeviceProfileName(const std::vector<v1::Device>& devices);

// Returns the profile as the YAML file that ParseDeviceProfile reads, with a comment on what was
// not measured.
std::string ToYaml(const v1::DeviceProfile& profile);

// The files that `--measure-peak` writes.
inline constexpr const char* kProfileFile = "profile.yaml";
// For devices with their own memory.
inline constexpr const char* kDeviceProfileFile = "device_profile.yaml";

// Reads the profile of one of `devices` devices from the first of `directories` with such a profile
// and a measured peak of this processor; NOT_FOUND if there is none.
StatusOr<v1::DeviceProfile> FindProfile(FileSystem& files,
                                        const std::vector<std::string>& directories, int devices);

// Reads what MeasureDeviceProfile measured for `devices`, by name; NOT_FOUND if none of
// `directories` has it.
StatusOr<v1::DeviceProfile> FindDeviceProfile(FileSystem& files,
                                              const std::vector<std::string>& directories,
                                              const std::vector<v1::Device>& devices);

}  // namespace troupe

#endif  // TROUPE_WORKER_DEVICES_MEASURE_PROFILE_H_
