// NVML's functions with values that a test sets: see fake_nvml.h. Constants are written as in
// NVML's reference, not taken from nvml_api.h, so that tests find a wrong one there.
#include "worker/devices/testing/fake_nvml.h"

#include <chrono>
#include <cstdio>
#include <cstring>

namespace {

using troupe::FakeEvent;
using troupe::FakeGpu;
using troupe::FakeNvml;

constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kTimeout = 10;

FakeNvml& Fake() {
  static FakeNvml fake;
  return fake;
}

// A handle is the address of the GPU's entry, which is stable like NVML's handles.
using Entry = std::pair<const std::string, FakeGpu>;

// Calls `use` with the GPU that the handle refers to.
template <typename Use>
int WithGpu(void* device, Use use) {
  std::lock_guard lock(Fake().mutex);
  FakeGpu& gpu = static_cast<Entry*>(device)->second;
  return gpu.fails != 0 ? gpu.fails : use(gpu);
}

int CopyText(const std::string& text, char* to, unsigned length) {
  if (text.size() + 1 > length) return 7;  // NVML_ERROR_INSUFFICIENT_SIZE
  std::memcpy(to, text.c_str(), text.size() + 1);
  return kSuccess;
}

}  // namespace

extern "C" {

FakeNvml* troupe_fake_nvml() { return &Fake(); }

int nvmlInit_v2() {
  std::lock_guard lock(Fake().mutex);
  if (Fake().init_fails != 0) return Fake().init_fails;
  ++Fake().starts;
  return kSuccess;
}

int nvmlShutdown() {
  std::lock_guard lock(Fake().mutex);
  --Fake().starts;
  Fake().changed.notify_all();
  return kSuccess;
}

const char* nvmlErrorString(int result) {
  switch (result) {
    case 3:
      return "Not Supported";
    case 6:
      return "Not Found";
    case 9:
      return "Driver Not Loaded";
    case 15:
      return "GPU is lost";
    case 16:
      return "GPU requires reset";
    default:
      return "Unknown Error";
  }
}

int nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return CopyText("580.95.05", version, length);
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  std::lock_guard lock(Fake().mutex);
  const auto found = Fake().gpus.find(uuid);
  if (found == Fake().gpus.end()) return kNotFound;
  if (found->second.fails != 0) return found->second.fails;
  *device = &*found;
  return kSuccess;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
  std::lock_guard lock(Fake().mutex);
  for (Entry& entry : Fake().gpus) {
    if (entry.second.pci != address) continue;
    *device = &entry;
    return kSuccess;
  }
  return kNotFound;
}

int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  return WithGpu(
      device, [&](FakeGpu&) { return CopyText(static_cast<Entry*>(device)->first, uuid, length); });
}

int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  return WithGpu(device, [&](FakeGpu& gpu) { return CopyText(gpu.name, name, length); });
}

int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  {
    std::unique_lock lock(Fake().mutex);
    ++Fake().samples;
    Fake().changed.notify_all();
    Fake().changed.wait(lock, [] { return !Fake().hangs; });
  }
  return WithGpu(device, [&](FakeGpu& gpu) {
    *celsius = gpu.celsius;
    return sensor == 0 ? kSuccess : kInvalidArgument;
  });
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  return WithGpu(device, [&](FakeGpu& gpu) {
    *milliwatts = gpu.milliwatts;
    return kSuccess;
  });
}

// nvmlUtilization_t and nvmlMemory_t in NVML's layouts.
struct Utilization {
  unsigned gpu;
  unsigned memory;
};
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

int nvmlDeviceGetUtilizationRates(void* device, Utilization* rates) {
  return WithGpu(device, [&](FakeGpu& gpu) {
    *rates = {gpu.utilization, 99};
    return kSuccess;
  });
}

int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, void*) {
  return WithGpu(device, [&](FakeGpu& gpu) {
    const bool fit = gpu.processes <= *count;
    *count = gpu.processes;
    return fit ? kSuccess : 7;  // NVML_ERROR_INSUFFICIENT_SIZE
  });
}

int nvmlDeviceGetClockInfo(void* device, int clock, unsigned* megahertz) {
  return WithGpu(device, [&](FakeGpu& gpu) {
    *megahertz = gpu.megahertz;
    return clock == 1 ? kSuccess : kInvalidArgument;
  });
}

int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  return WithGpu(device, [&](FakeGpu& gpu) {
    *memory = {80'000'000'000, 80'000'000'000 - gpu.used_bytes, gpu.used_bytes};
    return kSuccess;
  });
}

int nvmlDeviceGetTotalEccErrors(void* device, int error_type, int counter_type,
                                unsigned long long* count) {
  return WithGpu(device, [&](FakeGpu& gpu) {
    if (!gpu.has_ecc) return kNotSupported;
    // Counters of type 1 count over the life of the board.
    const unsigned long long former = counter_type == 1 ? 1000 : 0;
    *count = former + (error_type == 1 ? gpu.uncorrected : gpu.corrected);
    return kSuccess;
  });
}

int nvmlDeviceGetCurrentClocksEventReasons(void* device, unsigned long long* reasons) {
  return WithGpu(device, [&](FakeGpu& gpu) {
    *reasons = gpu.clock_reasons;
    return kSuccess;
  });
}

// nvmlFieldValue_t in NVML's layout.
struct Field {
  unsigned id;
  unsigned scope;
  long long timestamp;
  long long latency;
  int type;
  int result;
  unsigned long long value;
};

int nvmlDeviceGetFieldValues(void* device, int count, Field* fields) {
  return WithGpu(device, [&](FakeGpu& gpu) {
    for (int i = 0; i < count; ++i) {
      fields[i].result = fields[i].id == 230 ? kSuccess : kNotSupported;
      fields[i].type = 1;  // unsigned int
      std::memcpy(&fields[i].value, &gpu.recovery_action, sizeof(gpu.recovery_action));
    }
    return kSuccess;
  });
}

int nvmlDeviceGetSupportedEventTypes(void* device, unsigned long long* types) {
  return WithGpu(device, [&](FakeGpu& gpu) {
    *types = gpu.event_types;
    return kSuccess;
  });
}

int nvmlEventSetCreate(void** set) {
  std::lock_guard lock(Fake().mutex);
  ++Fake().event_sets;
  *set = &Fake().events;
  return kSuccess;
}

int nvmlEventSetFree(void*) {
  std::lock_guard lock(Fake().mutex);
  --Fake().event_sets;
  return kSuccess;
}

int nvmlDeviceRegisterEvents(void* device, unsigned long long types, void*) {
  return WithGpu(device, [&](FakeGpu& gpu) {
    if ((types & ~gpu.event_types) != 0) return kNotSupported;
    gpu.registered |= types;
    return kSuccess;
  });
}

// nvmlEventData_t in NVML's layout.
struct Event {
  void* device;
  unsigned long long type;
  unsigned long long data;
  unsigned gpu_instance;
  unsigned compute_instance;
};

int nvmlEventSetWait_v2(void*, Event* event, unsigned limit_ms) {
  std::unique_lock lock(Fake().mutex);
  ++Fake().waits;
  Fake().changed.notify_all();
  if (Fake().wait_fails != 0) return Fake().wait_fails;
  if (!Fake().changed.wait_for(lock, std::chrono::milliseconds(limit_ms),
                               [] { return !Fake().events.empty(); })) {
    return kTimeout;
  }
  const FakeEvent next = Fake().events.front();
  Fake().events.pop_front();
  const auto gpu = Fake().gpus.find(next.uuid);
  if (gpu == Fake().gpus.end() || (gpu->second.registered & next.type) == 0) return kTimeout;
  *event = {&*gpu, next.type, next.data, 0xffffffff, 0xffffffff};
  return kSuccess;
}

}  // extern "C"
