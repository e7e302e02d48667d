#include "kernels/cuda/runtime/command.h"

namespace troupe::kernels::cuda {

std::string Name(Stream stream) {
  switch (stream) {
    case Stream::kCompute:
      return "compute";
    case Stream::kCommunication:
      return "communication";
    case Stream::kCopy:
      return "copy";
  }
  return fmt::format("{}", static_cast<int>(stream));
}

Status Enqueue(const Command& command, Device& device) {
  struct Visitor {
    Device& device;
    const Stream stream;
    Status operator()(const KernelLaunch& launch) const { return device.Launch(launch, stream); }
    Status operator()(const CopyCommand& copy) const {
      return device.Copy(copy.to, copy.from, copy.bytes, stream);
    }
    Status operator()(const LibraryCommand& library) const { return library.enqueue(stream); }
    Status operator()(const RecordCommand& record) const {
      return device.Record(record.event, stream);
    }
    Status operator()(const WaitCommand& wait) const { return device.WaitFor(wait.event, stream); }
  };
  return std::visit(Visitor{device, command.stream}, command.what);
}

}  // namespace troupe::kernels::cuda
