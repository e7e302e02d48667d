// A program prepared for a GPU.
#ifndef TROUPE_KERNELS_CUDA_RUNTIME_CUDA_EXECUTABLE_H_
#define TROUPE_KERNELS_CUDA_RUNTIME_CUDA_EXECUTABLE_H_

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend/backend.h"
#include "kernels/backend/op_sequence.h"
#include "kernels/cuda/runtime/make_device_communicator.h"
#include "kernels/cuda/runtime/pipeline_links.h"
#include "kernels/cuda/runtime/preparation.h"
#include "kernels/cuda/runtime/stalls.h"
#include "kernels/cuda/runtime/step_calls.h"

namespace troupe::kernels::cuda {

class CudaExecutable : public Executable {
 public:
  // All arguments must outlive this object. Prepare and the first run of each part of a step append
  // to `fallbacks` the operations that do not run on the best implementation; `graph_captures`
  // counts the captured graphs.
  CudaExecutable(const model::Program& program, const model::MemoryPlan& plan, Device& device,
                 const DeviceLibraries& libraries, const FindCommunicator& find_communicator,
                 const MakeDeviceCommunicator& make_communicator,
                 std::vector<std::string>* fallbacks, int64_t* graph_captures);
  // Waits for work in flight, then destroys the graphs, the communicators that the graphs use, and
  // their memory, in this order.
  ~CudaExecutable() override;

  Status Prepare();
  // "attention: own kernels"; complete after Prepare.
  const std::set<std::string>& implementations() const { return preparation_.implementations(); }
  const ExecutedMatmuls& executed_matmuls() const { return preparation_.executed_matmuls(); }

  void Observe(OperationObserver* observer) override { observer_ = observer; }
  Status Connect() override;
  Status BeginPart(StepPart part) override;
  Status EndPart() override;
  Status Run(int chunk_index, model::Piece piece, int buffer, const RunOptions& options) override;
  Status RunUpdate() override;
  Status RunInitialize() override;
  Status AddLink(Communicator& link) override;
  Status Send(model::ValueId value, int buffer, Communicator& link) override;
  Status WaitSend(model::ValueId value, int buffer) override;
  Status PostReceive(model::ValueId value, int buffer, Communicator& link) override;
  Status Receive(model::ValueId value, int buffer, Communicator& link) override;
  Status Finish() override;
  DeviceCalls device_calls() const override { return {host_waits_, graph_launches_}; }
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
    bool host_waits = false;  // the host must wait for device results to continue
    Overwrites overwrites = Overwrites::kNever;
    std::array<Commands, 2> commands;  // indexed by accumulate; variants that never run are empty
  };
  using Instructions = std::vector<Instruction>;

  // A recorded part of a step.
  struct Part {
    StepCalls calls;
    DeviceMemory staged;                 // device memory for the bytes of its writes
    std::array<DeviceMemory, 2> pinned;  // host buffers for them, used alternately
    std::array<Event, 2> uploaded{};
    int64_t runs = 0;                    // completed runs
    std::vector<std::byte> first_bytes;  // the bytes of the first run
    std::optional<Graph> graph;          // absent: the device could not capture it
  };

  // Makes the device communicator of `host`, a group or a pipeline link. `user` names the operation
  // that needs it.
  Status MakeCommunicator(Communicator& host, const std::string& user);
  StatusOr<Instructions> Make(const std::vector<model::Op>& ops, int buffer);
  Status EnqueueAll(const Instructions& instructions, const std::vector<model::Op>& ops, int buffer,
                    const RunOptions& options);
  // Copies the bytes of a write into the buffer of the current run.
  void Stage(Part* part, int64_t offset, std::span<const std::byte> bytes);
  Status Allocate(Part* part);
  // Enqueues the calls of `part`, whose bytes are already in `staged`.
  Status EnqueueCalls(const Part& part);
  Status Capture(Part* part);
  // Errors: UNIMPLEMENTED with the name of an operation of `part` that cannot be captured.
  Status CheckCaptures(const Part& part) const;
  Status CheckSize(model::ValueId value, size_t bytes) const;
  PipelineLinks::Boundary BoundaryOf(model::ValueId value, int buffer) const;
  // Copies host memory to the device and waits for the copy.
  Status Upload(void* to, std::span<const std::byte> bytes);

  const model::Program& program_;
  const model::MemoryPlan& plan_;
  Device& device_;
  const FindCommunicator find_communicator_;
  const MakeDeviceCommunicator make_communicator_;
  // Orders groups identically on every rank; they are connected in this order, so that ranks cannot
  // deadlock.
  struct ByName {
    bool operator()(const Communicator* a, const Communicator* b) const {
      return a->name() < b->name();
    }
  };
  std::map<Communicator*, std::unique_ptr<DeviceCommunicator>, ByName> communicators_;
  Stalls stalls_;
  Preparation preparation_;
  PipelineLinks links_;
  std::vector<std::vector<std::vector<Instructions>>> pieces_;  // [chunk][piece][buffer]
  Instructions update_;
  Instructions initialize_;
  DeviceMemory bounce_;  // pinned buffer for Write and Read
  Event finished_ = 0;
  int64_t host_waits_ = 0, graph_launches_ = 0;
  std::array<Part, kStepParts> parts_;
  Part* open_ = nullptr;  // the part being recorded, whose calls are not executed yet
  std::vector<std::string>& fallbacks_;
  int64_t& graph_captures_;
  std::atomic<const char*> current_ = "";
  OperationObserver* observer_ = nullptr;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_RUNTIME_CUDA_EXECUTABLE_H_
