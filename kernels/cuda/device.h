// A GPU as our CUDA backend sees it: memory, streams, events, kernels, graphs. The seam between what is to be done, which
// is computed anywhere, and the driver.
//
// What a function puts onto a stream is done in the order of that stream; streams know of each other by events alone.
// Thread-safety: one thread at a time.
#ifndef TROUPE_KERNELS_CUDA_DEVICE_H_
#define TROUPE_KERNELS_CUDA_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "kernels/cuda/launch.h"

namespace troupe::kernels::cuda {

// Those with a name are there from the beginning, more are made by Device::MakeStream and count on from them.
enum class Stream : uint8_t { kCompute, kCommunication, kCopy };
inline constexpr int kNamedStreams = 3;
std::string Name(Stream stream);  // "compute", "3"

// Given back to the device when destroyed, which must outlive it.
using DeviceMemory = std::unique_ptr<char, std::function<void(char*)>>;

// A mark on a stream; made by Device::MakeEvent.
using Event = int;
// Work that was captured; made by Device::EndCapture.
using Graph = int;

class Device {
 public:
  virtual ~Device() = default;

  // Model, driver and libraries, part of a frozen plan.
  virtual std::string description() const = 0;

  // Of any contents, aligned to 256. RESOURCE_EXHAUSTED names the bytes that could not be had.
  virtual StatusOr<DeviceMemory> Allocate(int64_t bytes) = 0;
  // Of the host, where copies need not wait for each other.
  virtual StatusOr<DeviceMemory> AllocatePinned(int64_t bytes) = 0;

  // Makes memory of the host pinned as long as the result lives, which the memory and this device outlive.
  virtual StatusOr<std::shared_ptr<void>> Pin(void* memory, int64_t bytes) = 0;

  // Brings its kernel onto the device. Else the first launch does, which may wait for all that is under way there: for
  // ever, where that waits for another rank, and that for what this host is yet to hand over.
  virtual Status Load(const KernelLaunch& launch) = 0;
  virtual Status Launch(const KernelLaunch& launch, Stream stream) = 0;
  // Between any two of device memory and pinned memory, which do not overlap.
  virtual Status Copy(void* to, const void* from, int64_t bytes, Stream stream) = 0;

  // The same at once, between device memory and any memory of the host: returns when it is done. May be called by another
  // thread than the one that uses the device, of memory that nothing under way writes.
  virtual Status CopyNow(void* to, const void* from, int64_t bytes) = 0;
  // Fills device memory with 0.
  virtual Status Clear(void* to, int64_t bytes, Stream stream) = 0;

  // A stream whose work goes ahead of the compute stream's, as the communication stream's does. RESOURCE_EXHAUSTED beyond
  // the 256th.
  virtual StatusOr<Stream> MakeStream() = 0;

  virtual StatusOr<Event> MakeEvent() = 0;
  // `event` is what has been put onto `stream` so far.
  virtual Status Record(Event event, Stream stream) = 0;
  // What is put onto `stream` from now on waits for what `event` is now; nothing where it was never recorded.
  virtual Status WaitFor(Event event, Stream stream) = 0;

  // From here to EndCapture what is put onto the compute stream, and onto streams that wait for what it holds, is not done
  // but kept. REQUIRES: at the end the compute stream waits for all that was kept.
  virtual Status BeginCapture() = 0;
  virtual StatusOr<Graph> EndCapture() = 0;
  // Onto the compute stream, as one.
  virtual Status LaunchGraph(Graph graph) = 0;
  // It is launched no more, and destroyed once it is over. Libraries of which it holds work do not end before.
  virtual void Release(Graph graph) = 0;

  // Returns when what `event` is now is over, or with the device's error. UNAVAILABLE after an abort of its collectives,
  // even where the event is over: what aborted collectives leave is not what was asked for. DEADLINE_EXCEEDED at the
  // device's limit for one wait.
  virtual Status Finish(Event event) = 0;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_DEVICE_H_
