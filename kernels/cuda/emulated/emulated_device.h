// A device of the host's memory, on which the emulator runs kernels: what tests run the CUDA backend on.
//
// Nothing is done before the host waits, and nothing after what it waits for is over. Streams take turns as `order` says,
// however events let them, so that a missing wait shows: with kComputeFirst the compute stream runs as far ahead as it may,
// with kComputeLast it lags. What waits for other ranks holds up its own stream alone. Memory is full of what is not a
// number until something is written there. Counts what was asked of it.
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
#include "kernels/cuda/device.h"

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

  // What no kernel does.
  Status Enqueue(std::string name, std::function<Status()> what, Stream stream);
  // The same of an operation of the host's communicators, begun when the stream comes to it. Other streams go on while it
  // is under way, from `patience` on.
  using BeginOperation = std::function<StatusOr<CollectiveHandle>()>;
  Status EnqueueOperation(std::string name, BeginOperation begin, Duration patience, Stream stream);

  // Launches outside of graphs.
  int64_t launches() const { return launches_; }
  int64_t graph_launches() const { return graph_launches_; }
  // Graphs that were captured and not released.
  int64_t graphs_held() const { return graphs_held_; }
  // Launches, outside of graphs and in them, of kernels that were not loaded before.
  int64_t late_loads() const { return late_loads_; }
  // Those that no wait of the host has needed yet.
  int64_t graphs_under_way() const { return graph_launches_ - graphs_done_; }
  // Finish of what was not over.
  int64_t host_waits() const { return host_waits_; }
  // The bytes of device memory and pinned memory that are held.
  int64_t allocated_bytes() const { return allocated_bytes_; }
  // Of the host's, made pinned and still so.
  int64_t pinned_bytes() const { return pinned_bytes_; }
  // A line for everything that a graph holds, in the order in which it was captured.
  std::string ToText(Graph graph) const;

 private:
  static constexpr Event kNoEvent = -1;
  struct Work {
    Stream stream;
    std::string name;
    std::function<Status()> run;  // null: of an event, or an operation
    BeginOperation begin;
    Duration patience{};
    Event event = kNoEvent;
    int64_t version = 0;  // of the event that is recorded or waited for
    bool waits = false;
  };
  using Works = std::vector<Work>;
  struct Queue {
    std::deque<Work> works;
    std::optional<CollectiveHandle> under_way;  // of the first one
  };
  using Queues = std::vector<Queue>;  // by stream

  Status Add(Work work);
  static void Append(Work work, Queues* queues);
  // Runs what is queued, each stream in order, until `event` is over or nothing is left; kNoEvent: the latter.
  // INTERNAL where streams wait for each other for ever.
  Status RunUntil(Event event, Queues* queues);
  // Takes one step in the first stream that can; false: none can.
  StatusOr<bool> StepAny(Queues* queues);
  // Takes one step in `queue`; false: it is empty, or waits.
  StatusOr<bool> Step(Queue* queue);
  // INTERNAL where what was captured cannot be a graph: a stream that does not wait for the compute stream, or that the
  // compute stream does not wait for at the end, or a wait for what was recorded before.
  Status CheckCapture(const Works& works) const;

  const StreamOrder order_;
  int streams_ = kNamedStreams;
  Queues pending_;
  bool capturing_ = false;
  Works captured_;
  std::vector<Works> graphs_;
  std::set<const void*> loaded_;  // kernels
  struct EventState {
    int64_t recorded = 0;  // versions put onto a stream
    int64_t over = 0;
  };
  std::vector<EventState> events_;
  // Operations that were under way when another work failed: they end with the network.
  std::vector<CollectiveHandle> left_;
  int64_t launches_ = 0, graph_launches_ = 0, graphs_done_ = 0, graphs_held_ = 0, late_loads_ = 0, host_waits_ = 0, allocated_bytes_ = 0, pinned_bytes_ = 0;
};

}  // namespace troupe::kernels::cuda::emulator

#endif  // TROUPE_KERNELS_CUDA_EMULATED_EMULATED_DEVICE_H_
