// The few functions and values of NVIDIA's management library (NVML) that this folder uses,
// declared here because a machine that builds Troupe has no nvml.h. Names, values and layouts are
// those of the NVML API reference (docs.nvidia.com/deploy/nvml-api) and were compared with version
// 13 of nvml.h; published values do not change.
#ifndef TROUPE_WORKER_DEVICES_NVML_API_H_
#define TROUPE_WORKER_DEVICES_NVML_API_H_

namespace troupe::nvml {

// Codes of nvmlReturn_t that this folder distinguishes; 0 is success.
using Return = int;
inline constexpr Return kSuccess = 0;
inline constexpr Return kNotSupported = 3;  // the device does not support it
inline constexpr Return kNoPermission = 4;
inline constexpr Return kNotFound = 6;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kTimeout = 10;
inline constexpr Return kGpuIsLost = 15;  // fallen off the bus or otherwise unreachable
inline constexpr Return kResetRequired = 16;

// nvmlDevice_t and nvmlEventSet_t: opaque pointers.
using Device = void*;
using EventSet = void*;

// Sizes that hold every text of these kinds, including the terminating zero.
inline constexpr unsigned kUuidBytes = 96;           // NVML_DEVICE_UUID_V2_BUFFER_SIZE
inline constexpr unsigned kNameBytes = 96;           // NVML_DEVICE_NAME_V2_BUFFER_SIZE
inline constexpr unsigned kDriverVersionBytes = 80;  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE

inline constexpr int kTemperatureOfGpu = 0;  // NVML_TEMPERATURE_GPU: the sensor of the die

inline constexpr int kClockOfMultiprocessors = 1;  // NVML_CLOCK_SM

// nvmlUtilization_t: percent of the last sampling period.
struct Utilization {
  unsigned int gpu = 0;     // in which a kernel ran
  unsigned int memory = 0;  // in which memory was read or written
};

// nvmlMemory_t: bytes. `used` contains what the driver reserves.
struct Memory {
  unsigned long long total = 0;
  unsigned long long free = 0;
  unsigned long long used = 0;
};

// Values of nvmlMemoryErrorType_t and nvmlEccCounterType_t.
inline constexpr int kCorrectedErrors = 0;
inline constexpr int kUncorrectedErrors = 1;
inline constexpr int kSinceDriverLoad = 0;  // NVML_VOLATILE_ECC

// Bits of nvmlDeviceGetCurrentClocksEventReasons.
inline constexpr unsigned long long kSoftwarePowerCap = 0x4;
inline constexpr unsigned long long kHardwareSlowdown = 0x8;
inline constexpr unsigned long long kSyncBoost = 0x10;
inline constexpr unsigned long long kSoftwareThermalSlowdown = 0x20;
inline constexpr unsigned long long kHardwareThermalSlowdown = 0x40;
inline constexpr unsigned long long kHardwarePowerBrake = 0x80;

// Bits of nvmlDeviceRegisterEvents.
inline constexpr unsigned long long kDoubleBitEccEvent = 0x2;  // nvmlEventTypeDoubleBitEccError
inline constexpr unsigned long long kXidEvent = 0x8;           // nvmlEventTypeXidCriticalError

// nvmlEventData_t.
struct EventData {
  Device device = nullptr;
  unsigned long long type = 0;
  unsigned long long data = 0;  // for kXidEvent: the Xid; 999 if the driver does not know which
  unsigned int gpu_instance = 0;
  unsigned int compute_instance = 0;
};
static_assert(sizeof(EventData) == 32);

// Layout of nvmlFieldValue_t; this folder requests one field.
inline constexpr unsigned kRecoveryActionField = 230;  // NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
union Value {
  double as_double;
  unsigned int as_unsigned;
  unsigned long long as_unsigned_long_long = 0;
};
struct FieldValue {
  unsigned int field = 0;
  unsigned int scope = 0;
  long long timestamp_us = 0;
  long long latency_us = 0;
  int value_type = 0;
  Return result = kSuccess;
  Value value;
};
static_assert(sizeof(FieldValue) == 40);

// The functions, each with the name that the library exports.
using Init = Return();                                           // nvmlInit_v2
using Shutdown = Return();                                       // nvmlShutdown
using ErrorString = const char*(Return);                         // nvmlErrorString
using SystemGetDriverVersion = Return(char*, unsigned);          // nvmlSystemGetDriverVersion
using DeviceGetHandleByUuid = Return(const char*, Device*);      // nvmlDeviceGetHandleByUUID
using DeviceGetHandleByPciBusId = Return(const char*, Device*);  // nvmlDeviceGetHandleByPciBusId_v2
using DeviceGetUuid = Return(Device, char*, unsigned);           // nvmlDeviceGetUUID
using DeviceGetName = Return(Device, char*, unsigned);           // nvmlDeviceGetName
using DeviceGetTemperature = Return(Device, int sensor, unsigned* celsius);
using DeviceGetPowerUsage = Return(Device, unsigned* milliwatts);
using DeviceGetUtilizationRates = Return(Device, Utilization*);
using DeviceGetClockInfo = Return(Device, int clock, unsigned* megahertz);
using DeviceGetMemoryInfo = Return(Device, Memory*);
using DeviceGetTotalEccErrors = Return(Device, int error_type, int counter_type,
                                       unsigned long long* count);
using DeviceGetCurrentClocksEventReasons = Return(Device, unsigned long long* reasons);
// nvmlDeviceGetComputeRunningProcesses_v3. The layout of the entries differs between drivers.
using DeviceGetComputeRunningProcesses = Return(Device, unsigned* count, void* processes);
using DeviceGetFieldValues = Return(Device, int count, FieldValue*);
using DeviceGetSupportedEventTypes = Return(Device, unsigned long long* types);
using EventSetCreate = Return(EventSet*);
using DeviceRegisterEvents = Return(Device, unsigned long long types, EventSet);
using EventSetWait = Return(EventSet, EventData*, unsigned limit_ms);  // nvmlEventSetWait_v2
using EventSetFree = Return(EventSet);

}  // namespace troupe::nvml

#endif  // TROUPE_WORKER_DEVICES_NVML_API_H_
