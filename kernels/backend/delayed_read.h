// Reads values after the work that was submitted before, without blocking the host at once.
#ifndef TROUPE_KERNELS_BACKEND_DELAYED_READ_H_
#define TROUPE_KERNELS_BACKEND_DELAYED_READ_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "collective/statistics.h"
#include "model/program/program.h"

namespace troupe::kernels {

struct ValueBytes {
  model::ValueId value;
  int64_t bytes;  // size of the whole value
};

// Seconds that the device's compute stream has waited for transfers that no computation hid, since
// its executable was made.
struct DeviceStalls {
  std::array<double, kPurposes> by_purpose{};
  double receives = 0;  // waits for data from neighbouring stages, included in Purpose::kPipe

  DeviceStalls operator-(const DeviceStalls& before) const {
    DeviceStalls since = *this;
    for (size_t p = 0; p < since.by_purpose.size(); ++p)
      since.by_purpose[p] -= before.by_purpose[p];
    since.receives -= before.receives;
    return since;
  }
};

// Copies some persistent values to the host without blocking the host at once.
class DelayedRead {
 public:
  virtual ~DelayedRead() = default;
  // Enqueues a read of the values after all work that was submitted to the executable so far.
  // Discards the results of the previous read. REQUIRES: not between Executable::BeginPart and
  // EndPart.
  virtual Status Start() = 0;
  // Blocks until the read completes; does not wait for work that was submitted after Start.
  virtual Status Finish() = 0;
  // Contents of the value with this index; valid until the next Start.
  virtual std::span<const std::byte> bytes(size_t index) const = 0;
  // The device's stalls up to Start. Absent on a host backend: there the host itself waits, and its
  // network measures that.
  virtual std::optional<DeviceStalls> stalls() const = 0;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_DELAYED_READ_H_
