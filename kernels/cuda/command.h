// What an operation is to a device: launches, copies and calls of libraries, in order, with all addresses in them.
#ifndef TROUPE_KERNELS_CUDA_COMMAND_H_
#define TROUPE_KERNELS_CUDA_COMMAND_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/device.h"

namespace troupe::kernels::cuda {

struct CopyCommand {
  void* to;
  const void* from;
  int64_t bytes;
};
// Put onto its stream by a library: a product, a collective.
struct LibraryCommand {
  std::function<Status(Stream)> enqueue;
  // It reads what the device has computed, so it cannot be captured.
  bool host_waits = false;
};
struct RecordCommand {
  Event event;
};
struct WaitCommand {
  Event event;
};

struct Command {
  template <typename What>
  Command(Stream on, What&& does) : stream(on), what(std::forward<What>(does)) {}

  Stream stream;
  std::variant<KernelLaunch, CopyCommand, LibraryCommand, RecordCommand, WaitCommand> what;
};
using Commands = std::vector<Command>;

// Puts `command` onto its stream of `device`.
Status Enqueue(const Command& command, Device& device);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_COMMAND_H_
