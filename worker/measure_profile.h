// A device profile of this host (plan/device_profile.h), measured: what `troupe plan --profile` reads.
#ifndef TROUPE_WORKER_MEASURE_PROFILE_H_
#define TROUPE_WORKER_MEASURE_PROFILE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "collective/network.h"
#include "kernels/backend.h"
#include "kernels/backend_rates.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/worker.pb.h"
#include "worker/attained_rates.h"
#include "worker/device_probe.h"

namespace troupe {

// Of one of `devices` devices that share this host's cores and memory evenly. Layers are timed on all devices at once
// (MeasureAttainedRates), memory and the start of an operation on all cores, the links between two threads of this
// process over UCX. One host cannot see a fabric: it is given the island's figures. Takes seconds.
StatusOr<v1::DeviceProfile> MeasureProfile(const HostPeak& peak, int devices,
                                            const AttainedRatesOptions& rates = {});

// Makes the backend of one of this host's devices; `network`: of the rank that it is to be, null where it is alone.
using MakeDeviceBackend =
    std::function<StatusOr<std::unique_ptr<kernels::Backend>>(int device, CollectiveNetwork* network)>;

struct DeviceProfileOptions {
  kernels::BackendRatesOptions rates;
  size_t large_bytes = size_t{1} << 28;  // of the sum that tells how fast a link is
};

// Of one of several equal devices with memory of their own (GPUs). The first is timed alone; the link by sums of the first two
// as ranks in threads of this process, or, of one device alone, between threads of the host, where nothing will travel.
// The peak is the known one, or what the product attains where none is known. Takes seconds.
StatusOr<v1::DeviceProfile> MeasureDeviceProfile(const std::vector<v1::Device>& devices,
                                                 const MakeDeviceBackend& make,
                                                 const DeviceProfileOptions& options = {});

// Model, number and versions: what a profile was measured of. REQUIRES: a device.
std::string DeviceProfileName(const std::vector<v1::Device>& devices);

// As the YAML file that ParseDeviceProfile reads, with a comment on what was not measured.
std::string ToYaml(const v1::DeviceProfile& profile);

// Where `--measure-peak` leaves it.
inline constexpr const char* kProfileFile = "profile.yaml";
inline constexpr const char* kDeviceProfileFile = "device_profile.yaml";  // of devices with memory of their own

// What was measured of one of `devices` devices, in the first of `directories` that has a measured peak of this very
// processor beside such a profile; NOT_FOUND where none has.
StatusOr<v1::DeviceProfile> FindProfile(FileSystem& files,
                                        const std::vector<std::string>& directories, int devices);


// What MeasureDeviceProfile made of `devices`, by name: NOT_FOUND where none of `directories` has it.
StatusOr<v1::DeviceProfile> FindDeviceProfile(FileSystem& files, const std::vector<std::string>& directories,
                                              const std::vector<v1::Device>& devices);

}  // namespace troupe

#endif  // TROUPE_WORKER_MEASURE_PROFILE_H_
