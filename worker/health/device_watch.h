// Watches the GPUs of this host through NVML, on a thread of its own: samples each at an interval,
// takes their error events as they come, and judges both (worker/health/device_health.h).
#ifndef TROUPE_WORKER_HEALTH_DEVICE_WATCH_H_
#define TROUPE_WORKER_HEALTH_DEVICE_WATCH_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "worker/health/device_health.h"
#include "worker/health/device_sample.h"

namespace troupe {

struct WatchedDevice {
  int index = 0;   // of the device on this worker
  std::string id;  // "GPU-…", NVML's UUID, or its PCI address, "0000:3b:00.0"
};

// What there is to know of one device since it was last told of.
struct DeviceObservation {
  int index = 0;
  std::string id;  // as in WatchedDevice
  DeviceSample sample;
  std::vector<DeviceEvent> events;
  // Its cause names the device: "Xid 79 (GPU has fallen off the bus) on GPU-…".
  Verdict verdict;
  Duration elapsed{};  // since its last observation; 0 for the first
};

struct DeviceWatchOptions {
  std::string library;  // NVML's
  std::vector<WatchedDevice> devices;
  Duration interval = std::chrono::seconds(1);
  // Called on the watch's thread, never after the watch's end: one observation of each device every
  // interval, and one at once for each event. A device that cannot be read is not observed until it
  // can.
  std::function<void(const DeviceObservation&)> observed;
};

// Thread-safe. Without NVML, or where it does not know a device, the log says once that the health of
// GPUs, or of that one, is not watched, and why.
class DeviceWatch {
 public:
  // REQUIRES: there are devices, and the interval is positive.
  explicit DeviceWatch(DeviceWatchOptions options);
  // Ends the watch. A thread that hangs in the driver is left behind after kEndLimit: it tells nothing
  // any more.
  ~DeviceWatch();
  DeviceWatch(const DeviceWatch&) = delete;
  DeviceWatch& operator=(const DeviceWatch&) = delete;

  static constexpr Duration kEndLimit = std::chrono::seconds(2);

 private:
  struct Shared;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_HEALTH_DEVICE_WATCH_H_
