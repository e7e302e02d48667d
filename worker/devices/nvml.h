// NVIDIA's management library (NVML), loaded at run time: sensors, processes, error counters and
// error events of GPUs. Troupe can be built and started without the library, a driver or a GPU.
//
// Thread-safe as NVML is, except Nvml::Load and the destructor. Calls into a hanging driver do not
// return: a caller that must not hang uses a thread of its own (worker/devices/device_watch.h).
#ifndef TROUPE_WORKER_DEVICES_NVML_H_
#define TROUPE_WORKER_DEVICES_NVML_H_

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/shared_library.h"
#include "base/status.h"
#include "worker/devices/device_sample.h"
#include "worker/devices/nvml_api.h"

namespace troupe {

// The library's name on the library path, as installed by the driver's packages.
inline constexpr char kNvmlLibrary[] = "libnvidia-ml.so.1";

class Nvml {
 public:
  // Loads and starts `library`. Returns NOT_FOUND if it cannot be loaded, UNIMPLEMENTED if it lacks
  // a function (named), UNAVAILABLE with NVML's own words if it does not start (no driver, no GPU).
  static StatusOr<std::unique_ptr<Nvml>> Load(const std::string& library);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  const std::string& driver_version() const { return driver_version_; }

  // Returns the GPU with UUID "GPU-…" or PCI address "0000:3b:00.0". NOT_FOUND if there is none;
  // DATA_LOSS if it has fallen off the bus or waits for a reset.
  StatusOr<nvml::Device> Find(const std::string& id) const;
  StatusOr<std::string> Uuid(nvml::Device device) const;
  StatusOr<std::string> Name(nvml::Device device) const;

  // Samples the device; `lost` has the reason if it is unreachable. Returns UNAVAILABLE if nothing
  // can be read for another reason.
  StatusOr<DeviceSample> Sample(nvml::Device device) const;

  // Returns the number of processes that can compute on the device, this one included. In a
  // container NVML may leave out those outside. UNIMPLEMENTED if the driver does not report it.
  StatusOr<int> ComputeProcesses(nvml::Device device) const;

 private:
  friend class NvmlEvents;
  struct Functions;
  explicit Nvml(std::unique_ptr<SharedLibrary> library);
  // Returns OK, or `what` with NVML's words: NOT_FOUND, DATA_LOSS (lost, waits for a reset),
  // UNIMPLEMENTED (the device does not support it), PERMISSION_DENIED, else UNAVAILABLE.
  Status Check(nvml::Return result, const std::string& what) const;

  const std::unique_ptr<SharedLibrary> library_;
  const std::unique_ptr<Functions> functions_;
  bool started_ = false;
  std::string driver_version_;
};

// Error events of some devices. Only one thread at a time may use it.
class NvmlEvents {
 public:
  struct Event {
    nvml::Device device = nullptr;
    DeviceEvent what;
  };

  // Returns UNAVAILABLE if events are not supported. `nvml` outlives the object.
  static StatusOr<std::unique_ptr<NvmlEvents>> Make(const Nvml& nvml);
  ~NvmlEvents();
  NvmlEvents(const NvmlEvents&) = delete;
  NvmlEvents& operator=(const NvmlEvents&) = delete;

  // Starts to report the errors of `device`. Returns UNIMPLEMENTED if it reports none.
  Status Register(nvml::Device device);

  // Returns the next event; none if no event comes within `limit`, sometimes earlier. DATA_LOSS if
  // a device was lost.
  StatusOr<std::optional<Event>> Wait(Duration limit);

 private:
  NvmlEvents(const Nvml& nvml, nvml::EventSet set) : nvml_(nvml), set_(set) {}

  const Nvml& nvml_;
  const nvml::EventSet set_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DEVICES_NVML_H_
