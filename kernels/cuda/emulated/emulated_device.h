// A device in host memory on which the emulator runs kernels, for tests of the CUDA backend.
//
// It runs no work before the host waits, and none beyond what the host waits for. Streams run in
// the order `order`, as far as events permit, so that a missing wait shows: with kComputeFirst the
// compute stream runs ahead as far as possible, with kComputeLast it lags. Work that waits for
// other ranks blocks only its own stream. Memory is filled with NaNs until it is written. The
// device counts the calls it gets.
#ifndef TROUPE_KERNELS_CUDA_EMULATED_EMULATED_DEVICE_H_
#define TROUPE_KERNELS_CUDA_EMULATED_EMULATED_DEVICE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "collective/communicator.h"
#include "kernels/cuda/runtime/device.h"

namespace troupe::kernels::cuda::emulator {

enum class StreamOrder : uint8_t { kComputeFirst, kComputeLast };

class EmulatedDevice : public Device {
 public:
  explicit EmulatedDevice(StreamOrder order = StreamOrder::kComputeFirst) : order_(order) {}

  std::string description() const override { return "emulated"; }
  StatusOr<DeviceMemory> Allocate(int64_t bytes) override;
  StatusOr<DeviceMemory> AllocatePinned(int64_t bytes) override { return Allocate(bytes); }
  StatusOr<std::shared_ptr<void>> Pin(void* memory, int64_t bytes) override;
  Status Load(const KernelLaunch& launch) override;
  Status Launch(const KernelLaunch& launch, Stream stream) override;
  Status Copy(void* to, const void* from, int64_t bytes, Stream stream) override;
  Status CopyNow(void* to, const void* from, int64_t bytes) override;
  Status Clear(void* to, int64_t bytes, Stream stream) override;
  StatusOr<Stream> MakeStream() override;
  StatusOr<Event> MakeEvent() override;
  Status Record(Event event, Stream stream) override;
  Status WaitFor(Event event, Stream stream) override;
  Status BeginCapture() override;
  StatusOr<Graph> EndCapture() override;
  Status LaunchGraph(Graph graph) override;
  void Release(Graph) override { --graphs_held_; }
  Status Finish(Event event) override;

  // Enqueues work that is not a kernel.
  Status Enqueue(std::string name, std::function<Status()> what, Stream stream);
  // Enqueues an operation of the host's communicators, which starts when the stream reaches it.
  // Other streams continue while it is in flight, after `patience`.
  using BeginOperation = std::function<StatusOr<CollectiveHandle>()>;
  Status EnqueueOperation(std::string name, BeginOperation begin, Duration patience, Stream stream);

  // Number of launches outside of graphs.
  int64_t launches() const { return launches_; }
  int64_t graph_launches() const { return graph_launches_; }
  // Number of graphs captured and not released.
  int64_t graphs_held() const { return graphs_held_; }
  // Number of launches, outside of graphs and in them, of kernels that were not loaded before.
  int64_t late_loads() const { return late_loads_; }
  // Number of launched graphs that no wait of the host has required yet.
  int64_t graphs_in_flight() const { return graph_launches_ - graphs_done_; }
  // Number of calls of Finish for events that were not over.
  int64_t host_waits() const { return host_waits_; }
  // Bytes of device memory and pinned memory in use.
  int64_t allocated_bytes() const { return allocated_bytes_; }
  // Bytes of host memory currently pinned.
  int64_t pinned_bytes() const { return pinned_bytes_; }
  // One line for each piece of work in a graph, in the order of capture.
  std::string ToText(Graph graph) const;

 private:
  static constexpr Event kNoEvent = -1;
  struct Work {
    Stream stream;
    std::string name;
    std::function<Status()> run;  // null: for an event, or an operation
    BeginOperation begin;
    Duration patience{};
    Event event = kNoEvent;
    int64_t version = 0;  // version of the recorded or awaited event
    bool waits = false;
  };
  using Works = std::vector<Work>;
  struct Queue {
    std::deque<Work> works;
    std::optional<CollectiveHandle> in_flight;  // handle of the first work, once started
  };
  using Queues = std::vector<Queue>;  // indexed by stream

  Status Add(Work work);
  static void Append(Work work, Queues* queues);
  // Runs queued work, each stream in order, until `event` is over or no work is left; with kNoEvent
  // until no work is left. Errors: INTERNAL if streams deadlock.
  Status RunUntil(Event event, Queues* queues);
  // Runs one step in the first stream that can run; false if none can.
  StatusOr<bool> StepAny(Queues* queues);
  // Runs one step in `queue`; false if it is empty or blocked.
  StatusOr<bool> Step(Queue* queue);
  // Errors: INTERNAL if the captured work cannot form a graph: a stream that does not wait for the
  // compute stream, or that the compute stream does not wait for at the end, or a wait for an event
  // recorded before the capture.
  Status CheckCapture(const Works& works) const;

  const StreamOrder order_;
  int streams_ = kNamedStreams;
  Queues pending_;
  bool capturing_ = false;
  Works captured_;
  std::vector<Works> graphs_;
  std::set<const void*> loaded_;  // kernels
  struct EventState {
    int64_t recorded = 0;  // versions enqueued on a stream
    int64_t over = 0;
  };
  std::vector<EventState> events_;
  // Operations that were in flight when other work failed; they end with the network.
  std::vector<CollectiveHandle> left_;
  int64_t launches_ = 0, graph_launches_ = 0, graphs_done_ = 0, graphs_held_ = 0, late_loads_ = 0,
          host_waits_ = 0, allocated_bytes_ = 0, pinned_bytes_ = 0;
};

}  // namespace troupe::kernels::cuda::emulator

#endif  // TROUPE_KERNELS_CUDA_EMULATED_EMULATED_DEVICE_H_
