#include "plan/device/worker_devices.h"

#include <charconv>

#include "plan/device/device_traits.h"

namespace troupe {

StatusOr<WorkerDevices> ParseWorkerDevices(std::string_view text) {
  const size_t colon = text.find(':');
  WorkerDevices devices{.kind = std::string(text.substr(0, colon))};
  const DeviceTraits* const traits = FindDeviceTraits(devices.kind);
  if (colon != std::string_view::npos && traits != nullptr) {
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data() + colon + 1, last, devices.count);
    if (error == std::errc() && end == last && devices.count >= 1 &&
        devices.count <= kWorkerDevicesMax) {
      return devices;
    }
  }
  return InvalidArgument("--devices is \"{}\", must be {} with N from 1 to {}", text,
                         WorkerDevicesForms(" or "), kWorkerDevicesMax);
}

std::string WorkerDevicesForms(std::string_view separator) {
  std::string forms;
  for (const std::string_view kind : DeviceKinds()) {
    forms += fmt::format("{}{}:N", forms.empty() ? "" : separator, kind);
  }
  return forms;
}

}  // namespace troupe
