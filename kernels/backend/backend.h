// The interface between stage programs and devices.
//
// Backend::Prepare resolves every op to a kernel and every value to an address, once.
// Executable::Run then does no allocation, no map lookup and no string operation. One thread at a
// time may use an Executable.
#ifndef TROUPE_KERNELS_BACKEND_BACKEND_H_
#define TROUPE_KERNELS_BACKEND_BACKEND_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "collective/communicator.h"
#include "collective/device_statistics.h"
#include "collective/statistics.h"
#include "kernels/backend/executed_matmuls.h"
#include "kernels/backend/host_transfers.h"
#include "model/program/memory_plan.h"
#include "model/program/program.h"

namespace troupe::kernels {

// Returns the communicator of a collective op's group, or null if the group has one rank.
using FindCommunicator = std::function<Communicator*(const model::CollectiveGroup&)>;

struct RunOptions {
  bool first_microbatch = false;  // accumulators are overwritten by their first writer
  // True for the last microbatch of a step; collectives that run once per step start in it.
  bool last_microbatch = false;
  bool evaluate = false;  // skips operations that only the derivative needs
  // Restricts the run to operations [first_op, end_op) of the piece. Successive runs of a piece on
  // a buffer must be in order and without gaps; runs of pieces of other chunks may come in between.
  int first_op = 0;
  int end_op = std::numeric_limits<int>::max();
};

// Is notified of each operation that has run.
class OperationObserver {
 public:
  virtual ~OperationObserver() = default;
  // Called after `op` of the program ran on `buffer`, in the thread that runs it. `name` is the
  // kind and value as in reports; it lives as long as the executable.
  virtual void Ran(const model::Op& op, const char* name, int buffer) = 0;
};

// The two parts of a rank's work in a step: the summed gradients of all microbatches, then the
// update.
enum class StepPart : uint8_t { kGradients, kUpdate };
inline constexpr int kStepParts = 2;

struct ValueBytes {
  model::ValueId value;
  int64_t bytes;  // size of the whole value
};

// Seconds that the device's compute stream has waited for transfers that no computation hid, since
// its executable was made.
struct DeviceStalls {
  std::array<double, kPurposes> by_purpose{};
  double receives = 0;  // waits for data from neighbouring stages, included in Purpose::kPipe

  DeviceStalls operator-(const DeviceStalls& before) const {
    DeviceStalls since = *this;
    for (size_t p = 0; p < since.by_purpose.size(); ++p)
      since.by_purpose[p] -= before.by_purpose[p];
    since.receives -= before.receives;
    return since;
  }
};

// Copies some persistent values to the host without blocking the host at once.
class DelayedRead {
 public:
  virtual ~DelayedRead() = default;
  // Enqueues a read of the values after all work that was submitted to the executable so far.
  // Discards the results of the previous read. REQUIRES: not between BeginPart and EndPart.
  virtual Status Start() = 0;
  // Blocks until the read completes; does not wait for work that was submitted after Start.
  virtual Status Finish() = 0;
  // Contents of the value with this index; valid until the next Start.
  virtual std::span<const std::byte> bytes(size_t index) const = 0;
  // The device's stalls up to Start. Absent on a host backend: there the host itself waits, and its
  // network measures that.
  virtual std::optional<DeviceStalls> stalls() const = 0;
};

class Executable {
 public:
  virtual ~Executable() = default;

  // Notifies `observer` of every operation from now on; null stops the notifications.
  virtual void Observe(OperationObserver* observer) = 0;

  // Connects the device communicators, if any. Collective; call after the host network is
  // connected.
  virtual Status Connect() = 0;

  // Begin and end a part of a step. Every step must make the same calls of Run, RunUpdate, Write
  // and of transfers between the two, with other bytes to write, and none of Read; each transfer
  // that is started in the part must be waited for in it. A backend may record the calls from the
  // first step on and submit them to its device as one graph in EndPart.
  virtual Status BeginPart(StepPart part) = 0;
  virtual Status EndPart() = 0;

  // Runs the ops of one piece on one buffer (0 <= buffer < memory_plan.buffers[chunk_index]).
  // Update and initialize have their own functions. If a collective fails, the returned Status
  // names the op.
  virtual Status Run(int chunk_index, model::Piece piece, int buffer,
                     const RunOptions& options) = 0;
  virtual Status RunUpdate() = 0;
  virtual Status RunInitialize() = 0;

  // Transfers between pipeline stages over directed pipeline links. A link is a group of two ranks:
  // rank 0 sends and rank 1 receives, and the n-th Send of a link matches its n-th receive. Calls
  // take effect in the order in which they are made, at once or later; only a backend that computes
  // in host memory blocks within these calls.
  //
  // Registers `edge` as a link for the functions below. Call before Connect, which connects to the
  // other rank's device.
  virtual Status AddEdge(Communicator& edge) = 0;
  // Enqueues a send of the value, as it is after all earlier calls. Later calls may overlap with
  // the send; they must not write the value before WaitSend.
  virtual Status Send(model::ValueId value, int buffer, Communicator& edge) = 0;
  // Orders all later calls after the last Send of the value.
  virtual Status WaitSend(model::ValueId value, int buffer) = 0;
  // Allows the value to be received from now on; nothing may access it until Receive.
  virtual Status PostReceive(model::ValueId value, int buffer, Communicator& edge) = 0;
  // Makes the received value available to all later calls. Completes the posted receive, or starts
  // a receive if none was posted.
  virtual Status Receive(model::ValueId value, int buffer, Communicator& edge) = 0;

  // Blocks until all earlier calls are done, including the transfers that were waited for. Call it,
  // outside of parts, before the host waits for other ranks: they may need data that this rank's
  // device has not sent yet.
  virtual Status Finish() = 0;

  // Number of times that a call has blocked on the device, delayed reads excluded. Absent on a host
  // backend, which never does.
  virtual std::optional<int64_t> host_waits() const = 0;

  // Number of graph launches; a graph holds a whole part of a step. Absent on a host backend.
  virtual std::optional<int64_t> graph_launches() const = 0;

  // The device address of a value. `buffer` is 0 for persistent values.
  virtual void* Address(model::ValueId value, int buffer) = 0;
  // Copy between host memory and a value (inputs in, losses out).
  virtual Status Write(model::ValueId value, int buffer, std::span<const std::byte> bytes) = 0;
  virtual Status Read(model::ValueId value, int buffer, std::span<std::byte> bytes) = 0;
  // Makes a delayed read of these values; it must not outlive this executable. Each of several
  // delayed reads keeps the results of its own Start.
  virtual StatusOr<std::unique_ptr<DelayedRead>> MakeDelayedRead(
      std::vector<ValueBytes> values) = 0;
  // Copies between two values of equal size in bytes.
  virtual Status Copy(model::ValueId from, int from_buffer, model::ValueId to, int to_buffer) = 0;

  // Whether addresses point to host memory that holds values in their own dtypes, so that host code
  // may read and write them in place.
  virtual bool is_host_memory() const = 0;
  // Copies a part of a persistent value to host memory. Another thread may call it while Run goes
  // on, for values that nothing changes meanwhile.
  virtual Status ReadPart(model::ValueId value, int64_t offset_bytes,
                          std::span<std::byte> bytes) = 0;

  // Pins `memory`, which must outlive the result, as does this executable, so that the device
  // copies to it in ReadPart without work of the host. Returns null if pinning makes no difference,
  // or if it fails, which is recorded as a fall-back.
  virtual std::shared_ptr<void> Pin(std::span<std::byte> memory) = 0;

  // Name of the op that runs now or ran last, for crash reports; safe to call from another thread.
  virtual const char* CurrentOperation() const = 0;
};

// A DelayedRead that reads at once, for executables whose calls complete before they return.
class ImmediateRead : public DelayedRead {
 public:
  // `executable` must outlive this object.
  ImmediateRead(Executable& executable, std::vector<ValueBytes> values)
      : executable_(executable), values_(std::move(values)) {
    for (const ValueBytes& value : values_) bytes_.emplace_back(static_cast<size_t>(value.bytes));
  }

  Status Start() override {
    for (size_t i = 0; i < values_.size(); ++i) {
      TROUPE_RETURN_IF_ERROR(executable_.Read(values_[i].value, 0, bytes_[i]));
    }
    return OkStatus();
  }
  Status Finish() override { return OkStatus(); }
  std::span<const std::byte> bytes(size_t index) const override { return bytes_[index]; }
  std::optional<DeviceStalls> stalls() const override { return std::nullopt; }

 private:
  Executable& executable_;
  const std::vector<ValueBytes> values_;
  std::vector<std::vector<std::byte>> bytes_;
};

// An executable whose calls complete before they return and whose collectives are the host's. It
// may be destroyed only when no transfer is in flight or the network is closed.
class ImmediateExecutable : public Executable {
 public:
  Status Connect() final { return OkStatus(); }
  Status BeginPart(StepPart) final { return OkStatus(); }
  Status EndPart() final { return OkStatus(); }
  StatusOr<std::unique_ptr<DelayedRead>> MakeDelayedRead(std::vector<ValueBytes> values) final {
    return std::make_unique<ImmediateRead>(*this, std::move(values));
  }

  Status Finish() final { return OkStatus(); }
  std::optional<int64_t> host_waits() const final { return std::nullopt; }
  std::optional<int64_t> graph_launches() const final { return std::nullopt; }

  std::shared_ptr<void> Pin(std::span<std::byte>) final { return nullptr; }

  Status AddEdge(Communicator&) final { return OkStatus(); }
  Status Send(model::ValueId value, int buffer, Communicator& edge) final {
    transfers_.Send({value, buffer}, Memory(value, buffer), edge);
    return OkStatus();
  }
  Status WaitSend(model::ValueId value, int buffer) final {
    return transfers_.WaitSend({value, buffer});
  }
  Status PostReceive(model::ValueId value, int buffer, Communicator& edge) final {
    transfers_.PostReceive({value, buffer}, Memory(value, buffer), edge);
    return OkStatus();
  }
  Status Receive(model::ValueId value, int buffer, Communicator& edge) final {
    return transfers_.Receive({value, buffer}, Memory(value, buffer), edge);
  }

 protected:
  // The host memory of a value, in the backend's own representation.
  virtual std::span<std::byte> Memory(model::ValueId value, int buffer) = 0;

 private:
  HostTransfers transfers_;
};

// Work that preparation has done; a count is absent where the device has no such work.
struct PreparationCounts {
  std::optional<int64_t> tuning_cache_hits;  // implementations chosen from a tuning cache
  std::optional<int64_t> graph_captures;     // captured graphs of parts of a step
};

class Backend {
 public:
  virtual ~Backend() = default;
  // "avx512_bf16", "reference" …; recorded in a frozen plan.
  virtual std::string kernel_level() const = 0;
  // REQUIRES: `program` and `plan` outlive the executable. Errors: RESOURCE_EXHAUSTED, with the
  // number of bytes that could not be allocated.
  virtual StatusOr<std::unique_ptr<Executable>> Prepare(
      const model::Program& program, const model::MemoryPlan& plan,
      const FindCommunicator& find_communicator) = 0;
  // Operations that run on a slower implementation than the best one: "OPERATION WHERE: WHY". The
  // list may grow during an executable's first steps.
  virtual const std::vector<std::string>& fallbacks() const = 0;
  // Cost so far of the collectives that run on the device, over all executables; excludes those of
  // the host network.
  virtual std::vector<DeviceCollectiveStatistics> CollectiveStatistics() const { return {}; }
  // The device's own collectives in flight, and its part of the rank's flight record as JSON text;
  // empty if collectives run on the host. May be called from any thread.
  virtual std::vector<CollectiveFlight> Flights() const { return {}; }
  virtual std::string FlightRecorderJson() const { return ""; }
  // Whether the process can make another backend on this device after this one is destroyed; false
  // if it holds a device resource that cannot be released. Call it after its executables are
  // destroyed.
  virtual bool gives_back() const { return true; }
  // The implementation chosen for each operation that has several: "OPERATION: IMPLEMENTATION",
  // without duplicates.
  virtual const std::vector<std::string>& implementations() const = 0;
  // The operand types with which the matmuls of the most recently prepared program are computed.
  virtual std::vector<ExecutedMatmul> executed_matmuls() const = 0;
  virtual PreparationCounts preparation_counts() const = 0;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_BACKEND_H_
