// What this host's devices are: announced to the coordinator, frozen into plans.
#ifndef TROUPE_WORKER_DEVICE_PROBE_H_
#define TROUPE_WORKER_DEVICE_PROBE_H_

#include <functional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

// Floating-point operations per second of all cores of a host; 0 where unknown.
struct HostPeak {
  double float32 = 0;
  double bfloat16 = 0;
};

// `count` devices of kind cpu that share this host's cores and memory: each announces all cores and
// their peak. INVALID_ARGUMENT where TROUPE_KERNEL_LEVEL asks for what the processor has not.
StatusOr<std::vector<v1::Device>> ProbeCpuDevices(int count, const HostPeak& peak);

// The bytes of memory that a process of `groups` (the text of its /proc/self/cgroup) may use on a
// host that has `memory`: the least of that and of the limits of its control groups beneath `root`.
int64_t MemoryLimitOfGroups(const std::string& root, const std::string& groups, int64_t memory);

// "AMD EPYC 9654 96-Core Processor" of /proc/cpuinfo's text; "unknown" where it names none.
std::string ProcessorModel(const std::string& cpuinfo);

// The peak that the table of known processors gives for `cores` physical cores of `model`; 0 for
// unknown ones: an unknown device has no peak, and so no MFU.
HostPeak KnownPeak(const std::string& model, int cores);

// How many physical cores the hardware threads `allowed` are on: two that share one do not multiply
// twice as fast. `siblings`: what the system calls the threads of the core that a thread is on; empty
// where it does not tell, and then the thread counts as a core.
int PhysicalCores(const std::vector<int>& allowed,
                  const std::function<std::string(int thread)>& siblings);

// What `--measure-peak` wrote into DIRECTORY/peak.txt for this very processor, core count and
// kernel level; NOT_FOUND where there is none.
StatusOr<HostPeak> ReadMeasuredPeak(FileSystem& files, const std::string& directory);
Status WriteMeasuredPeak(FileSystem& files, const std::string& directory, const HostPeak& peak);

// Times large matrix products on all cores, the best of several runs. Takes seconds.
StatusOr<HostPeak> MeasurePeak();

// The measured peak of the first of `directories` that has one, else the table's.
HostPeak FindPeak(FileSystem& files, const std::vector<std::string>& directories);

}  // namespace troupe

#endif  // TROUPE_WORKER_DEVICE_PROBE_H_
