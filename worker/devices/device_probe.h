// The devices of this host, as announced to the coordinator and stored in plans.
#ifndef TROUPE_WORKER_DEVICES_DEVICE_PROBE_H_
#define TROUPE_WORKER_DEVICES_DEVICE_PROBE_H_

#include <functional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "plan/device/worker_devices.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

// Floating-point operations per second of all cores of a host; 0 if unknown.
struct HostPeak {
  double float32 = 0;
  double bfloat16 = 0;
};

// Returns the devices of the stated kind, as the worker announces them; `peak` is that of the
// host's cores. Has a case for each kind of device, and returns UNIMPLEMENTED for any other; errors
// of ProbeCpuDevices, ProbeCudaDevices and ProbeXlaDevices.
StatusOr<std::vector<v1::Device>> ProbeDevices(const WorkerDevices& stated, const HostPeak& peak);

// Returns `count` devices of kind cpu that share this host's cores and memory: each announces all
// cores and their peak. INVALID_ARGUMENT if TROUPE_KERNEL_LEVEL requests a level that the processor
// lacks.
StatusOr<std::vector<v1::Device>> ProbeCpuDevices(int count, const HostPeak& peak);

// Returns the bytes of memory that a process may use: the minimum of the host's `memory` and of the
// limits beneath `root` of its control groups, `groups` (the text of its /proc/self/cgroup).
int64_t MemoryLimitOfGroups(const std::string& root, const std::string& groups, int64_t memory);

// Returns "AMD EPYC 9654 96-Core Processor" from the text of /proc/cpuinfo; "unknown" if it names
// none.
std::string ProcessorModel(const std::string& cpuinfo);

// The peak of `cores` physical cores of `model` in the table of known processors; 0 for an unknown
// processor, which therefore has no MFU.
HostPeak KnownPeak(const std::string& model, int cores);

// The number of physical cores that the hardware threads `allowed` are on; two threads of one core
// do not multiply twice as fast. `siblings` returns the system's list of the threads of a thread's
// core, empty if the system does not report it; the thread then counts as a core.
int PhysicalCores(const std::vector<int>& allowed,
                  const std::function<std::string(int thread)>& siblings);

// Reads what `--measure-peak` wrote into DIRECTORY/peak.txt for this processor, core count and
// kernel level; NOT_FOUND if there is none.
StatusOr<HostPeak> ReadMeasuredPeak(FileSystem& files, const std::string& directory);
Status WriteMeasuredPeak(FileSystem& files, const std::string& directory, const HostPeak& peak);

// Times large matmuls on all cores and takes the best of several runs. Takes seconds.
StatusOr<HostPeak> MeasurePeak();

// The measured peak from the first of `directories` that has one, else the table's.
HostPeak FindPeak(FileSystem& files, const std::vector<std::string>& directories);

}  // namespace troupe

#endif  // TROUPE_WORKER_DEVICES_DEVICE_PROBE_H_
