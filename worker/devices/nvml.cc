#include "worker/devices/nvml.h"

#include <algorithm>
#include <utility>

namespace troupe {

struct Nvml::Functions {
  nvml::Init* init = nullptr;
  nvml::Shutdown* shutdown = nullptr;
  nvml::ErrorString* error_string = nullptr;
  nvml::SystemGetDriverVersion* driver_version = nullptr;
  nvml::DeviceGetHandleByUuid* by_uuid = nullptr;
  nvml::DeviceGetHandleByPciBusId* by_pci = nullptr;
  nvml::DeviceGetUuid* uuid = nullptr;
  nvml::DeviceGetName* name = nullptr;
  nvml::DeviceGetTemperature* temperature = nullptr;
  nvml::DeviceGetPowerUsage* power = nullptr;
  nvml::DeviceGetTotalEccErrors* ecc_errors = nullptr;
  nvml::DeviceGetCurrentClocksEventReasons* clock_reasons = nullptr;
  nvml::DeviceGetUtilizationRates* utilization = nullptr;
  nvml::DeviceGetClockInfo* clock = nullptr;
  nvml::DeviceGetMemoryInfo* memory = nullptr;
  nvml::DeviceGetComputeRunningProcesses* compute_processes = nullptr;  // null: not there
  nvml::DeviceGetFieldValues* field_values = nullptr;
  nvml::DeviceGetSupportedEventTypes* event_types = nullptr;
  nvml::EventSetCreate* event_set_create = nullptr;
  nvml::DeviceRegisterEvents* register_events = nullptr;
  nvml::EventSetWait* event_set_wait = nullptr;
  nvml::EventSetFree* event_set_free = nullptr;
};

namespace {

struct NvmlReason {
  unsigned long long bit;
  ThrottleReason reason;
};
constexpr NvmlReason kNvmlReasons[] = {
    {nvml::kSoftwarePowerCap, kThrottlePowerCap},
    {nvml::kSyncBoost, kThrottleSyncBoost},
    {nvml::kHardwareSlowdown, kThrottleSlowdown},
    {nvml::kSoftwareThermalSlowdown, kThrottleThermal},
    {nvml::kHardwareThermalSlowdown, kThrottleHardwareThermal},
    {nvml::kHardwarePowerBrake, kThrottlePowerBrake},
};

// Values of nvmlDeviceGpuRecoveryAction_t.
RecoveryAction RecoveryActionOf(unsigned value) {
  switch (value) {
    case 0:
      return RecoveryAction::kNone;
    case 1:
      return RecoveryAction::kReset;
    case 2:
      return RecoveryAction::kReboot;
    case 3:
      return RecoveryAction::kDrainPeers;
    case 4:
      return RecoveryAction::kDrainAndReset;
    default:
      return RecoveryAction::kOther;
  }
}

Status LookUpAll(const SharedLibrary& library, auto& functions) {
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlInit_v2", &functions.init));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlShutdown", &functions.shutdown));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlErrorString", &functions.error_string));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlSystemGetDriverVersion", &functions.driver_version));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlDeviceGetHandleByUUID", &functions.by_uuid));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlDeviceGetHandleByPciBusId_v2", &functions.by_pci));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlDeviceGetUUID", &functions.uuid));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlDeviceGetName", &functions.name));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlDeviceGetTemperature", &functions.temperature));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlDeviceGetPowerUsage", &functions.power));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlDeviceGetTotalEccErrors", &functions.ecc_errors));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlDeviceGetUtilizationRates", &functions.utilization));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlDeviceGetClockInfo", &functions.clock));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlDeviceGetMemoryInfo", &functions.memory));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlDeviceGetFieldValues", &functions.field_values));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlDeviceGetSupportedEventTypes", &functions.event_types));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlEventSetCreate", &functions.event_set_create));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlDeviceRegisterEvents", &functions.register_events));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlEventSetWait_v2", &functions.event_set_wait));
  TROUPE_RETURN_IF_ERROR(library.Find("nvmlEventSetFree", &functions.event_set_free));
  // The health of GPUs does not depend on these; older drivers have the second or none.
  if (!library.Find("nvmlDeviceGetComputeRunningProcesses_v3", &functions.compute_processes).ok()) {
    library.Find("nvmlDeviceGetComputeRunningProcesses_v2", &functions.compute_processes)
        .IgnoreError();
  }
  // Drivers before R535 have only its former name.
  if (library.Find("nvmlDeviceGetCurrentClocksEventReasons", &functions.clock_reasons).ok()) {
    return OkStatus();
  }
  return library.Find("nvmlDeviceGetCurrentClocksThrottleReasons", &functions.clock_reasons);
}

}  // namespace

Nvml::Nvml(std::unique_ptr<SharedLibrary> library)
    : library_(std::move(library)), functions_(std::make_unique<Functions>()) {}

Nvml::~Nvml() {
  if (started_) functions_->shutdown();
}

StatusOr<std::unique_ptr<Nvml>> Nvml::Load(const std::string& library) {
  TROUPE_ASSIGN_OR_RETURN(auto opened, SharedLibrary::Open("NVML", library));
  std::unique_ptr<Nvml> loaded(new Nvml(std::move(opened)));
  TROUPE_RETURN_IF_ERROR(Annotate(LookUpAll(*loaded->library_, *loaded->functions_), library));
  const nvml::Return started = loaded->functions_->init();
  if (started != nvml::kSuccess) {
    return Unavailable("{} cannot be started: {}", library,
                       loaded->functions_->error_string(started));
  }
  loaded->started_ = true;
  char version[nvml::kDriverVersionBytes] = {};
  TROUPE_RETURN_IF_ERROR(loaded->Check(loaded->functions_->driver_version(version, sizeof(version)),
                                       "the driver's version"));
  loaded->driver_version_ = version;
  return loaded;
}

Status Nvml::Check(nvml::Return result, const std::string& what) const {
  if (result == nvml::kSuccess) return OkStatus();
  StatusCode code = StatusCode::kUnavailable;
  if (result == nvml::kNotFound) code = StatusCode::kNotFound;
  if (result == nvml::kNotSupported) code = StatusCode::kUnimplemented;
  if (result == nvml::kNoPermission) code = StatusCode::kPermissionDenied;
  if (result == nvml::kGpuIsLost || result == nvml::kResetRequired) code = StatusCode::kDataLoss;
  return MakeStatus(code, fmt::format("{}: {}", what, functions_->error_string(result)));
}

StatusOr<nvml::Device> Nvml::Find(const std::string& id) const {
  nvml::Device device = nullptr;
  const nvml::Return found = id.starts_with("GPU-") ? functions_->by_uuid(id.c_str(), &device)
                                                    : functions_->by_pci(id.c_str(), &device);
  TROUPE_RETURN_IF_ERROR(Check(found, id));
  return device;
}

StatusOr<std::string> Nvml::Uuid(nvml::Device device) const {
  char text[nvml::kUuidBytes] = {};
  TROUPE_RETURN_IF_ERROR(Check(functions_->uuid(device, text, sizeof(text)), "UUID"));
  return std::string(text);
}

StatusOr<std::string> Nvml::Name(nvml::Device device) const {
  char text[nvml::kNameBytes] = {};
  TROUPE_RETURN_IF_ERROR(Check(functions_->name(device, text, sizeof(text)), "name"));
  return std::string(text);
}

StatusOr<DeviceSample> Nvml::Sample(nvml::Device device) const {
  DeviceSample sample;
  int values = 0;
  Status failed;
  // A value that the device does not have is absent; one that cannot be read this time is absent
  // from this sample.
  const auto read = [&](nvml::Return result, const char* what) {
    if (result == nvml::kSuccess) ++values;
    if (result == nvml::kSuccess || result == nvml::kNotSupported) {
      return result == nvml::kSuccess;
    }
    const Status status = Check(result, what);
    if (status.code() == StatusCode::kDataLoss) sample.lost = functions_->error_string(result);
    failed.Update(status);
    return false;
  };
  unsigned number = 0;
  if (read(functions_->temperature(device, nvml::kTemperatureOfGpu, &number), "temperature")) {
    sample.temperature_celsius = number;
  }
  if (read(functions_->power(device, &number), "power")) sample.power_watts = number * 1e-3;
  nvml::Utilization rates;
  if (read(functions_->utilization(device, &rates), "utilization")) {
    sample.utilization = rates.gpu * 1e-2;
  }
  if (read(functions_->clock(device, nvml::kClockOfMultiprocessors, &number), "clock")) {
    sample.clock_hertz = number * 1e6;
  }
  nvml::Memory memory;
  if (read(functions_->memory(device, &memory), "memory")) sample.memory_used_bytes = memory.used;
  unsigned long long count = 0;
  if (read(functions_->ecc_errors(device, nvml::kCorrectedErrors, nvml::kSinceDriverLoad, &count),
           "corrected memory errors")) {
    sample.corrected_errors = count;
  }
  if (read(functions_->ecc_errors(device, nvml::kUncorrectedErrors, nvml::kSinceDriverLoad, &count),
           "uncorrected memory errors")) {
    sample.uncorrected_errors = count;
  }
  if (read(functions_->clock_reasons(device, &count), "clocks")) {
    for (const NvmlReason& one : kNvmlReasons) {
      if ((count & one.bit) != 0) sample.throttle_reasons |= one.reason;
    }
  }
  nvml::FieldValue field;
  field.field = nvml::kRecoveryActionField;
  const nvml::Return asked = functions_->field_values(device, 1, &field);
  if (read(asked == nvml::kSuccess ? field.result : asked, "recovery action")) {
    sample.recovery_action = RecoveryActionOf(field.value.as_unsigned);
  }
  if (values == 0 && sample.lost.empty() && !failed.ok()) return failed;
  return sample;
}

StatusOr<int> Nvml::ComputeProcesses(nvml::Device device) const {
  constexpr char kWhat[] = "processes that compute";
  if (functions_->compute_processes == nullptr)
    return Unimplemented("{}: the driver does not report them", kWhat);
  // Room for none is too little if there are any.
  unsigned count = 0;
  const nvml::Return result = functions_->compute_processes(device, &count, nullptr);
  if (result != nvml::kInsufficientSize) TROUPE_RETURN_IF_ERROR(Check(result, kWhat));
  return static_cast<int>(count);
}

StatusOr<std::unique_ptr<NvmlEvents>> NvmlEvents::Make(const Nvml& nvml) {
  nvml::EventSet set = nullptr;
  TROUPE_RETURN_IF_ERROR(nvml.Check(nvml.functions_->event_set_create(&set), "events"));
  return std::unique_ptr<NvmlEvents>(new NvmlEvents(nvml, set));
}

NvmlEvents::~NvmlEvents() { nvml_.functions_->event_set_free(set_); }

Status NvmlEvents::Register(nvml::Device device) {
  unsigned long long types = 0;
  TROUPE_RETURN_IF_ERROR(nvml_.Check(nvml_.functions_->event_types(device, &types),
                                     "event types that the GPU reports"));
  // One type that a device does not know would make the driver refuse all.
  types &= nvml::kXidEvent | nvml::kDoubleBitEccEvent;
  if (types == 0) return Unimplemented("the GPU reports no errors");
  return nvml_.Check(nvml_.functions_->register_events(device, types, set_), "register events");
}

StatusOr<std::optional<NvmlEvents::Event>> NvmlEvents::Wait(Duration limit) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(limit).count();
  nvml::EventData data;
  const nvml::Return result = nvml_.functions_->event_set_wait(
      set_, &data, static_cast<unsigned>(std::max<int64_t>(0, milliseconds)));
  if (result == nvml::kTimeout) return std::optional<Event>();
  TROUPE_RETURN_IF_ERROR(nvml_.Check(result, "events"));
  Event event{.device = data.device};
  if (data.type == nvml::kXidEvent) {
    event.what = {.kind = DeviceEvent::Kind::kXid, .xid = data.data};
  } else if (data.type == nvml::kDoubleBitEccEvent) {
    event.what = {.kind = DeviceEvent::Kind::kDoubleBitError};
  } else {
    return std::optional<Event>();  // not requested
  }
  return std::optional<Event>(event);
}

}  // namespace troupe
