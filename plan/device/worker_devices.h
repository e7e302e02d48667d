// The devices of a worker, as --devices of `troupe up` and troupe-worker states them. Pure.
#ifndef TROUPE_PLAN_DEVICE_WORKER_DEVICES_H_
#define TROUPE_PLAN_DEVICE_WORKER_DEVICES_H_

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

inline constexpr int kWorkerDevicesMax = 64;

struct WorkerDevices {
  std::string kind = "cpu";
  int count = 1;

  std::string ToText() const { return fmt::format("{}:{}", kind, count); }
  bool operator==(const WorkerDevices&) const = default;
};

// Parses a text such as "cuda:2", of a kind that this build has. INVALID_ARGUMENT names --devices,
// the value and the valid form.
StatusOr<WorkerDevices> ParseWorkerDevices(std::string_view text);

}  // namespace troupe

#endif  // TROUPE_PLAN_DEVICE_WORKER_DEVICES_H_
