// A program prepared for a GPU.
#ifndef TROUPE_KERNELS_CUDA_CUDA_EXECUTABLE_H_
#define TROUPE_KERNELS_CUDA_CUDA_EXECUTABLE_H_

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/pipeline_edges.h"
#include "kernels/cuda/preparation.h"
#include "kernels/cuda/stalls.h"
#include "kernels/cuda/step_calls.h"
#include "kernels/op_sequence.h"

namespace troupe::kernels::cuda {

class CudaExecutable : public Executable {
 public:
  // All outlive this. `fallbacks` is told what runs on other than the best there is, by Prepare and in the first run
  // of each part of a step; `graph_captures` counts the graphs that are made of them.
  CudaExecutable(const model::Program& program, const model::MemoryPlan& plan, Device& device,
                 const DeviceLibraries& libraries, const FindCommunicator& find_communicator,
                 const MakeDeviceCommunicator& make_communicator,
                 std::vector<std::string>* fallbacks, int64_t* graph_captures);
  // Waits for what is under way, and then ends the graphs, the communicators whose work they hold, and the memory of both.
  ~CudaExecutable() override;

  Status Prepare();
  // "attention: own kernels"; complete after Prepare.
  const std::set<std::string>& implementations() const { return preparation_.implementations(); }
  const ExecutedProducts& executed_products() const { return preparation_.executed_products(); }

  void Observe(OperationObserver* observer) override { observer_ = observer; }
  Status Connect() override;
  Status BeginPart(StepPart part) override;
  Status EndPart() override;
  Status Run(int chunk_index, model::Piece piece, int buffer, const RunOptions& options) override;
  Status RunUpdate() override;
  Status RunInitialize() override;
  Status AddEdge(Communicator& edge) override;
  Status Send(model::ValueId value, int buffer, Communicator& edge) override;
  Status WaitSend(model::ValueId value, int buffer) override;
  Status PostReceive(model::ValueId value, int buffer, Communicator& edge) override;
  Status Receive(model::ValueId value, int buffer, Communicator& edge) override;
  Status Finish() override;
  std::optional<int64_t> host_waits() const override { return host_waits_; }
  std::optional<int64_t> graph_launches() const override { return graph_launches_; }
  void* Address(model::ValueId value, int buffer) override {
    return preparation_.Address(value, buffer);
  }
  Status Write(model::ValueId value, int buffer, std::span<const std::byte> bytes) override;
  Status Read(model::ValueId value, int buffer, std::span<std::byte> bytes) override;
  StatusOr<std::unique_ptr<DelayedRead>> MakeDelayedRead(std::vector<ValueBytes> values) override;
  Status Copy(model::ValueId from, int from_buffer, model::ValueId to, int to_buffer) override;
  bool is_host_memory() const override { return false; }
  Status ReadPart(model::ValueId value, int64_t offset_bytes, std::span<std::byte> bytes) override {
    return device_.CopyNow(bytes.data(), preparation_.Address(value, 0) + offset_bytes,
                           static_cast<int64_t>(bytes.size()));
  }
  std::shared_ptr<void> Pin(std::span<std::byte> memory) override;
  const char* CurrentOperation() const override { return current_.load(std::memory_order_relaxed); }

 private:
  struct Instruction {
    std::string name;
    bool gradient_in_forward = false;
    bool last_microbatch = false;
    bool host_waits = false;  // for what the device computes, before it can go on
    Overwrites overwrites = Overwrites::kNever;
    std::array<Commands, 2> commands;  // by whether it accumulates; those that never come are empty
  };
  using Instructions = std::vector<Instruction>;

  // A part of a step that was run before.
  struct Part {
    StepCalls calls;
    DeviceMemory staged;                  // the bytes of its writes, on the device
    std::array<DeviceMemory, 2> pinned;   // and on their way to it, by turns
    std::array<Event, 2> uploaded{};
    int64_t runs = 0;                     // that are over
    std::vector<std::byte> first_bytes;   // of the first run
    std::optional<Graph> graph;           // absent: the device could not capture it
  };

  // The device's twin of `host`, of a group or an edge. What wants it is named `user`.
  Status MakeCommunicator(Communicator& host, const std::string& user);
  StatusOr<Instructions> Make(const std::vector<model::Op>& ops, int buffer);
  Status EnqueueAll(const Instructions& instructions, const std::vector<model::Op>& ops, int buffer,
                    const RunOptions& options);
  // Puts the bytes of a write where the run at hand has them.
  void Stage(Part* part, int64_t offset, std::span<const std::byte> bytes);
  Status Allocate(Part* part);
  // Hands over what `part` holds. Its bytes lie in `staged`.
  Status EnqueueCalls(const Part& part);
  Status Capture(Part* part);
  // UNIMPLEMENTED names an operation of `part` that cannot be captured.
  Status CheckCaptures(const Part& part) const;
  Status CheckSize(model::ValueId value, size_t bytes) const;
  PipelineEdges::Boundary BoundaryOf(model::ValueId value, int buffer) const;
  // Between memory of the host and of the device, at once.
  Status Upload(void* to, std::span<const std::byte> bytes);

  const model::Program& program_;
  const model::MemoryPlan& plan_;
  Device& device_;
  const FindCommunicator find_communicator_;
  const MakeDeviceCommunicator make_communicator_;
  // The same order on every rank, in which groups are connected: no ranks wait for each other in a circle.
  struct ByName {
    bool operator()(const Communicator* a, const Communicator* b) const { return a->name() < b->name(); }
  };
  std::map<Communicator*, std::unique_ptr<DeviceCommunicator>, ByName> communicators_;
  Stalls stalls_;
  Preparation preparation_;
  PipelineEdges edges_;
  std::vector<std::vector<std::vector<Instructions>>> pieces_;  // [chunk][piece][buffer]
  Instructions update_;
  Instructions initialize_;
  DeviceMemory bounce_;  // pinned: what Write and Read move
  Event finished_ = 0;
  int64_t host_waits_ = 0, graph_launches_ = 0;
  std::array<Part, kStepParts> parts_;
  Part* open_ = nullptr;  // whose calls are kept, not done
  std::vector<std::string>& fallbacks_;
  int64_t& graph_captures_;
  std::atomic<const char*> current_ = "";
  OperationObserver* observer_ = nullptr;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_CUDA_EXECUTABLE_H_
