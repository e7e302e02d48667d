// Controls a library with NVML's functions and no GPU, which tests load in NVML's place.
#ifndef TROUPE_WORKER_DEVICES_TESTING_FAKE_NVML_H_
#define TROUPE_WORKER_DEVICES_TESTING_FAKE_NVML_H_

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>

namespace troupe {

struct FakeGpu {
  std::string pci;
  std::string name;
  unsigned celsius = 0;
  unsigned milliwatts = 0;
  unsigned utilization = 0;  // percent
  unsigned processes = 0;    // that compute
  unsigned megahertz = 0;
  unsigned long long used_bytes = 0;
  bool has_ecc = true;
  unsigned long long corrected = 0;
  unsigned long long uncorrected = 0;
  unsigned long long clock_reasons = 0;
  unsigned recovery_action = 0;
  unsigned long long event_types = 0x8 | 0x2 | 0x1;
  unsigned long long registered = 0;
  int fails = 0;  // code that every call for the device returns; 0: calls work
};

struct FakeEvent {
  std::string uuid;
  unsigned long long type = 0;
  unsigned long long data = 0;
};

// All fields are guarded by `mutex`.
struct FakeNvml {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, FakeGpu> gpus;  // by UUID
  std::deque<FakeEvent> events;  // not yet waited for; events that are not registered are dropped
  int init_fails = 0;            // code that nvmlInit_v2 returns
  int wait_fails = 0;            // code that nvmlEventSetWait_v2 returns
  int starts = 0;                // nvmlInit_v2 minus nvmlShutdown
  int event_sets = 0;            // created and not freed
  int waits = 0;                 // calls of nvmlEventSetWait_v2
  int samples = 0;               // calls of nvmlDeviceGetTemperature
  bool hangs = false;            // nvmlDeviceGetTemperature blocks until this is false
};

// Exported by the library as `troupe_fake_nvml`; a process has one instance.
using FakeNvmlOf = FakeNvml*();

}  // namespace troupe

#endif  // TROUPE_WORKER_DEVICES_TESTING_FAKE_NVML_H_
