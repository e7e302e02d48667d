// The environment that the NCCL communicators of one rank share.
#ifndef TROUPE_COLLECTIVE_NCCL_NCCL_ENVIRONMENT_H_
#define TROUPE_COLLECTIVE_NCCL_NCCL_ENVIRONMENT_H_

#include <atomic>
#include <chrono>
#include <functional>

#include "base/clock.h"
#include "base/status.h"
#include "collective/nccl/nccl_device.h"
#include "collective/nccl/nccl_library.h"

namespace troupe {

struct NcclOptions {
  Duration connect_limit = std::chrono::seconds(120);  // per group
  // An operation hangs if the device has begun it and not ended it for this long; also the limit of
  // one call.
  Duration hang_limit = std::chrono::seconds(60);
  Duration close_limit = std::chrono::seconds(10);  // per group; then it is aborted
  Duration watch_period = std::chrono::milliseconds(20);
};

// The functions may be called from any thread.
struct NcclEnvironment {
  const NcclLibrary& library;
  NcclDevice& device;
  const NcclOptions options;
  // Aborts all communicators and the host's network.
  const std::function<void(const Status&)> abort;
  // Returns the status of the abort; OK until then.
  const std::function<Status()> status;
  // Set if NCCL did not end a communicator within the limit.
  std::atomic<bool> leaves_behind = false;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_NCCL_NCCL_ENVIRONMENT_H_
