#include "worker/devices/device_watch.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "worker/devices/nvml.h"

namespace troupe {

// The state that the thread may use after the watch is destroyed.
struct DeviceWatch::Shared {
  explicit Shared(DeviceWatchOptions of_watch) : options(std::move(of_watch)) {}

  const DeviceWatchOptions options;
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;  // guarded by mutex, like the call of options.observed
  bool ended = false;
};

namespace {

// Limits how long the end of a watch waits, however rare the samples are.
constexpr Duration kWaitLimit = std::chrono::milliseconds(500);

struct OneDevice {
  WatchedDevice device;
  nvml::Device handle = nullptr;
  DeviceHistory history;
  DeviceSample sample;  // the last sample
  std::optional<MonotonicTime> observed_at;
  bool unread = false;  // the last attempt to sample it failed
  std::string noted;    // the last cause, so that each is logged only once
};

// The thread's side. A template, because only DeviceWatch may name its private type Shared.
template <typename Shared>
class Watching {
 public:
  explicit Watching(Shared& shared) : shared_(shared), options_(shared.options) {}

  void Run() {
    StatusOr<std::unique_ptr<Nvml>> loaded = Nvml::Load(options_.library);
    if (!loaded.ok()) {
      LogWarning("health", "the health of GPUs is not watched: {}", Message(loaded.status()));
      return;
    }
    nvml_ = *std::move(loaded);
    StatusOr<std::unique_ptr<NvmlEvents>> events = NvmlEvents::Make(*nvml_);
    if (events.ok()) {
      events_ = *std::move(events);
    } else {
      LogWarning("health", "errors of GPUs are not reported when they happen: {}",
                 Message(events.status()));
    }
    for (const WatchedDevice& device : options_.devices) Begin(device);
    LogInfo("health", "watches {} of {} GPUs with driver {}", devices_.size(),
            options_.devices.size(), nvml_->driver_version());
    MonotonicTime sample_at = clock_.Now();
    while (!devices_.empty() && !Stopping()) {
      if (clock_.Now() >= sample_at) {
        for (OneDevice& one : devices_) Observe(one, {});
        sample_at = std::max(sample_at + options_.interval, clock_.Now());
      }
      TakeEvents(std::min(sample_at - clock_.Now(), kWaitLimit));
    }
    events_.reset();
  }

 private:
  void Begin(const WatchedDevice& device) {
    OneDevice one{.device = device};
    const StatusOr<nvml::Device> found = nvml_->Find(device.id);
    if (!found.ok()) {
      LogWarning("health", "the health of device {} is not watched: {}", device.index,
                 Message(found.status()));
      if (found.status().code() != StatusCode::kDataLoss) return;
      // The device exists but cannot be used.
      one.sample.lost = "the GPU is lost or waits for a reset";
      Judge(one, {});
      return;
    }
    one.handle = *found;
    if (events_) {
      if (const Status registered = events_->Register(one.handle); !registered.ok()) {
        LogWarning("health", "errors of device {} are not reported when they happen: {}: {}",
                   device.index, device.id, Message(registered));
      }
    }
    LogInfo("health", "watches device {}: {}, {}", device.index,
            nvml_->Name(one.handle).value_or("a GPU without a name"),
            nvml_->Uuid(one.handle).value_or(device.id));
    devices_.push_back(std::move(one));
  }

  void TakeEvents(Duration limit) {
    if (!events_) return Sleep(limit);
    const StatusOr<std::optional<NvmlEvents::Event>> event = events_->Wait(limit);
    if (!event.ok()) {
      // The samples show which device is lost. A call that fails at once would fail at once again,
      // so the thread sleeps instead.
      if (!std::exchange(events_failed_, true)) {
        LogWarning("health", "events cannot be waited for: {}", Message(event.status()));
      }
      return Sleep(limit);
    }
    events_failed_ = false;
    if (!*event) return;
    for (OneDevice& one : devices_) {
      if (one.handle == (*event)->device) Observe(one, {(*event)->what});
    }
  }

  // Returns early when the watch ends.
  void Sleep(Duration limit) {
    std::unique_lock lock(shared_.mutex);
    shared_.changed.wait_for(lock, std::max(limit, Duration::zero()),
                             [this] { return shared_.stopping; });
  }

  void Observe(OneDevice& one, std::vector<DeviceEvent> events) {
    StatusOr<DeviceSample> sample = nvml_->Sample(one.handle);
    if (!sample.ok()) {
      if (!std::exchange(one.unread, true)) {
        LogWarning("health", "device {} cannot be read: {}: {}", one.device.index, one.device.id,
                   Message(sample.status()));
      }
      // If the device had an event, its last sample is judged with it.
      if (events.empty()) return;
    } else {
      one.unread = false;
      one.sample = *std::move(sample);
    }
    Judge(one, std::move(events));
  }

  void Judge(OneDevice& one, std::vector<DeviceEvent> events) {
    const MonotonicTime now = clock_.Now();
    DeviceObservation observation{.index = one.device.index,
                                  .id = one.device.id,
                                  .sample = one.sample,
                                  .events = std::move(events),
                                  .verdict = {},
                                  .elapsed = now - one.observed_at.value_or(now)};
    one.observed_at = now;
    observation.verdict = JudgeDevice(observation.sample, observation.events, now, &one.history);
    if (!observation.verdict.cause.empty()) {
      observation.verdict.cause += fmt::format(" on {}", one.device.id);
    }
    Note(one, observation.verdict);
    std::lock_guard lock(shared_.mutex);
    if (!shared_.stopping) options_.observed(observation);
  }

  void Note(OneDevice& one, const Verdict& verdict) {
    if (verdict.cause == one.noted) return;
    one.noted = verdict.cause;
    if (verdict.cause.empty()) {
      LogInfo("health", "device {} is healthy again", one.device.index);
    } else {
      LogWarning("health", "device {}: {}", one.device.index, verdict.cause);
    }
  }

  bool Stopping() {
    std::lock_guard lock(shared_.mutex);
    return shared_.stopping;
  }

  Shared& shared_;
  const DeviceWatchOptions& options_;
  SystemClock clock_;
  std::unique_ptr<Nvml> nvml_;
  std::unique_ptr<NvmlEvents> events_;
  std::vector<OneDevice> devices_;
  bool events_failed_ = false;
};

}  // namespace

DeviceWatch::DeviceWatch(DeviceWatchOptions options)
    : shared_(std::make_shared<Shared>(std::move(options))) {
  TROUPE_CHECK(!shared_->options.devices.empty(), "a device watch needs at least one device");
  TROUPE_CHECK(shared_->options.interval > Duration::zero(), "a device watch needs an interval");
  std::thread([shared = shared_] {
    Watching(*shared).Run();
    std::lock_guard lock(shared->mutex);
    shared->ended = true;
    shared->changed.notify_all();
  }).detach();
}

DeviceWatch::~DeviceWatch() {
  std::unique_lock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->changed.notify_all();
  if (!shared_->changed.wait_for(lock, kEndLimit, [this] { return shared_->ended; })) {
    LogWarning("health", "the device watch hangs in the GPU driver and is abandoned");
  }
}

}  // namespace troupe
