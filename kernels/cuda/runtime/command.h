// The device commands of an operation: kernel launches, copies and library calls, in order, with
// all addresses resolved.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_COMMAND_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_COMMAND_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "kernels/cuda/runtime/device.h"

namespace troupe::kernels::cuda {

struct CopyCommand {
  void* to;
  const void* from;
  int64_t bytes;
};
// Work that a library enqueues on its stream, such as a matmul or a collective.
struct LibraryCommand {
  std::function<Status(Stream)> enqueue;
  // The call reads results of the device on the host, so it cannot be captured.
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

// Enqueues `command` on its stream of `device`.
Status Enqueue(const Command& command, Device& device);

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_COMMAND_H_
