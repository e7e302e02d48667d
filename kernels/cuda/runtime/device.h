// A GPU as our CUDA backend sees it: memory, streams, events, kernels, graphs. The interface
// between the backend's logic, which runs on any machine, and the driver.
//
// Work on a stream runs in the order in which it was enqueued; streams synchronise only through
// events. Thread-safety: one thread at a time.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_DEVICE_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_DEVICE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "kernels/cuda/device_code/launch.h"

namespace troupe::kernels::cuda {

// The named streams always exist; Device::MakeStream makes further ones, with the numbers that
// follow.
enum class Stream : uint8_t { kCompute, kCommunication, kCopy };
inline constexpr int kNamedStreams = 3;
std::string Name(Stream stream);  // "compute", "3"

// Device memory that its destructor frees; the device must outlive it.
using DeviceMemory = std::unique_ptr<char, std::function<void(char*)>>;

// A point in a stream; made by Device::MakeEvent.
using Event = int;
// Captured work; made by Device::EndCapture.
using Graph = int;

class Device {
 public:
  virtual ~Device() = default;

  // Model, driver and libraries; recorded in a frozen plan.
  virtual std::string description() const = 0;

  // Allocates uninitialised memory, aligned to 256. Errors: RESOURCE_EXHAUSTED, with the number of
  // bytes that could not be allocated.
  virtual StatusOr<DeviceMemory> Allocate(int64_t bytes) = 0;
  // Allocates pinned host memory, with which copies can be asynchronous.
  virtual StatusOr<DeviceMemory> AllocatePinned(int64_t bytes) = 0;

  // Pins host memory as long as the result lives; the memory and this device must outlive the
  // result.
  virtual StatusOr<std::shared_ptr<void>> Pin(void* memory, int64_t bytes) = 0;

  // Loads the kernel onto the device. Otherwise the first launch does, which may wait for all work
  // in flight; that can deadlock if this work waits for another rank, which itself waits for work
  // that this host has not submitted yet.
  virtual Status Load(const KernelLaunch& launch) = 0;
  virtual Status Launch(const KernelLaunch& launch, Stream stream) = 0;
  // Copies between any two ranges of device or pinned memory, which must not overlap.
  virtual Status Copy(void* to, const void* from, int64_t bytes, Stream stream) = 0;

  // Copies between device memory and any host memory, and returns when the copy is done. Another
  // thread than the device's may call it, for memory that no work in flight writes.
  virtual Status CopyNow(void* to, const void* from, int64_t bytes) = 0;
  // Fills device memory with zeros.
  virtual Status Clear(void* to, int64_t bytes, Stream stream) = 0;

  // Makes a stream with the priority of the communication stream, above that of the compute stream.
  // Errors: RESOURCE_EXHAUSTED beyond the 256th.
  virtual StatusOr<Stream> MakeStream() = 0;

  virtual StatusOr<Event> MakeEvent() = 0;
  // Sets `event` to all work enqueued on `stream` so far.
  virtual Status Record(Event event, Stream stream) = 0;
  // Later work on `stream` waits for the current state of `event`; does nothing if the event was
  // never recorded.
  virtual Status WaitFor(Event event, Stream stream) = 0;

  // From now until EndCapture, work enqueued on the compute stream, and on streams that wait for
  // captured work, is captured instead of executed. REQUIRES: at the end the compute stream waits
  // for all captured work.
  virtual Status BeginCapture() = 0;
  virtual StatusOr<Graph> EndCapture() = 0;
  // Enqueues the graph on the compute stream as one unit.
  virtual Status LaunchGraph(Graph graph) = 0;
  // The graph must not be launched again; it is destroyed after its last launch completes.
  // Libraries whose work it contains must not be destroyed before.
  virtual void Release(Graph graph) = 0;

  // Waits until the recorded work of `event` completes, or returns the device's error. Errors:
  // UNAVAILABLE after an abort of its collectives, even if the work is over, because aborted
  // collectives leave undefined results; DEADLINE_EXCEEDED at the device's limit for one wait.
  virtual Status Finish(Event event) = 0;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_DEVICE_H_
