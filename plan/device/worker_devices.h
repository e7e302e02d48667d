// The devices of a worker, as --devices of `troupe up` and troupe-worker states them. Pure.
#ifndef TROUPE_PLAN_DEVICE_WORKER_DEVICES_H_
#define TROUPE_PLAN_DEVICE_WORKER_DEVICES_H_

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/status.h"
#include "plan/device/device_kind.h"

namespace troupe {

inline constexpr int kWorkerDevicesMax = 64;

struct WorkerDevices {
  std::string kind = std::string(kDefaultDeviceKind);
  int count = 1;

  std::string ToText() const { return fmt::format("{}:{}", kind, count); }
  bool operator==(const WorkerDevices&) const = default;
};

// Parses a text such as "cuda:2", of a kind that this build has. INVALID_ARGUMENT names --devices,
// the value and the valid form.
StatusOr<WorkerDevices> ParseWorkerDevices(std::string_view text);

// Returns the valid forms with `separator` between them: "cpu:N|cuda:N" for "|".
std::string WorkerDevicesForms(std::string_view separator);

}  // namespace troupe

#endif  // TROUPE_PLAN_DEVICE_WORKER_DEVICES_H_
