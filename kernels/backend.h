// The seam between stage programs and devices.
//
// Backend::Prepare resolves every op to a kernel and every value to an address once;
// Executable::Run then touches no allocator, no map, no string. An Executable is used by one thread
// at a time.
#ifndef TROUPE_KERNELS_BACKEND_H_
#define TROUPE_KERNELS_BACKEND_H_

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
#include "kernels/executed_products.h"
#include "kernels/host_transfers.h"
#include "model/program/memory_plan.h"
#include "model/program/program.h"

namespace troupe::kernels {

// Finds the communicator of a collective op's group; null where the group has one rank.
using FindCommunicator = std::function<Communicator*(const model::CollectiveGroup&)>;

struct RunOptions {
  bool first_microbatch = false;  // accumulators are overwritten by their first writer
  // Of the microbatches of a step; collectives that are due once then begin.
  bool last_microbatch = false;
  bool evaluate = false;          // skip what belongs to the derivative
  // Only operations [first_op, end_op) of the piece run, as far as it has them. The runs of a piece
  // on a buffer come in order and leave none out; runs of another chunk's pieces may come between.
  int first_op = 0;
  int end_op = std::numeric_limits<int>::max();
};

// Told of operations as they run.
class OperationObserver {
 public:
  virtual ~OperationObserver() = default;
  // `op` of the program has just run on `buffer`, in the thread that runs. `name`: kind and value, as
  // in reports; lives as long as the executable.
  virtual void Ran(const model::Op& op, const char* name, int buffer) = 0;
};

// A step's work on a rank: gradients of all its microbatches, summed up; and then the update.
enum class StepPart : uint8_t { kGradients, kUpdate };
inline constexpr int kStepParts = 2;

struct ValueBytes {
  model::ValueId value;
  int64_t bytes;  // all of it
};

// For how long a device's computation has waited for transfers that nothing hid, in seconds, since
// its executable was made.
struct DeviceStalls {
  std::array<double, kPurposes> by_purpose{};
  double receives = 0;  // of what a neighbouring stage sends: a part of that of Purpose::kPipe

  DeviceStalls operator-(const DeviceStalls& before) const {
    DeviceStalls since = *this;
    for (size_t p = 0; p < since.by_purpose.size(); ++p)
      since.by_purpose[p] -= before.by_purpose[p];
    since.receives -= before.receives;
    return since;
  }
};

// What some persistent values hold, brought to the host without a wait for it at once.
class DelayedRead {
 public:
  virtual ~DelayedRead() = default;
  // Reads what the values hold once all that the executable was asked for until now is done. What was read before is
  // gone. REQUIRES: not within a part of a step.
  virtual Status Start() = 0;
  // Returns once that is read; waits for nothing that was asked for after Start.
  virtual Status Finish() = 0;
  // Of the value with this index, until the next Start.
  virtual std::span<const std::byte> bytes(size_t index) const = 0;
  // The device's stalls up to Start. Absent where the host computes: it waits itself, and its
  // network measures that.
  virtual std::optional<DeviceStalls> stalls() const = 0;
};

class Executable {
 public:
  virtual ~Executable() = default;

  // From now on `observer` is told of every operation; null: nobody is.
  virtual void Observe(OperationObserver* observer) = 0;

  // Reaches the other ranks' devices where collectives are not the host's. All ranks call it, once the network is
  // connected.
  virtual Status Connect() = 0;

  // Between the two come the same calls of Run, RunUpdate, Write and of transfers in every step, with other bytes to write,
  // and no Read; what is sent or posted there is waited for there. A backend may keep the calls from the first step on, and
  // hand them to its device whole at EndPart.
  virtual Status BeginPart(StepPart part) = 0;
  virtual Status EndPart() = 0;

  // Runs the ops of one piece on one buffer (0 <= buffer < memory_plan.buffers[chunk_index]).
  // Update and initialize have entries of their own. A failed collective's Status comes back with
  // the op named.
  virtual Status Run(int chunk_index, model::Piece piece, int buffer,
                     const RunOptions& options) = 0;
  virtual Status RunUpdate() = 0;
  virtual Status RunInitialize() = 0;

  // Transfers between the stages of a pipeline, along directed edges: groups of two ranks, of which rank 0 sends and rank 1
  // receives; the n-th Send of an edge meets the n-th receive. What "is called" is done in order, at once or later: only a
  // backend of the host's own memory waits within these calls.
  //
  // Makes `edge` one that the functions below may name; before Connect, which reaches the other rank's device.
  virtual Status AddEdge(Communicator& edge) = 0;
  // Sends the value as it is when all that was called before is done; what is called later goes on beside it, and does not
  // write the value before WaitSend.
  virtual Status Send(model::ValueId value, int buffer, Communicator& edge) = 0;
  // What is called later comes after the last Send of the value.
  virtual Status WaitSend(model::ValueId value, int buffer) = 0;
  // The value may be received from now on; nothing touches it before Receive.
  virtual Status PostReceive(model::ValueId value, int buffer, Communicator& edge) = 0;
  // What is called later finds the received value, of the receive that was posted or else of one that begins now.
  virtual Status Receive(model::ValueId value, int buffer, Communicator& edge) = 0;

  // Returns when all that was called before is done, of transfers those that were waited for. To be called, outside of
  // parts, before the host waits for other ranks: they may wait for what this one's device is yet to send.
  virtual Status Finish() = 0;

  // How often a call has waited for the device so far, those of reads of it apart that are delayed; absent where the host
  // computes, which waits for nobody.
  virtual std::optional<int64_t> host_waits() const = 0;

  // How often a call has had the device run a graph, which holds all of a part of a step; absent where the host computes.
  virtual std::optional<int64_t> graph_launches() const = 0;

  // The device address of a value. `buffer` is 0 for persistent values.
  virtual void* Address(model::ValueId value, int buffer) = 0;
  // Copies between host memory and a value (inputs in, losses out).
  virtual Status Write(model::ValueId value, int buffer, std::span<const std::byte> bytes) = 0;
  virtual Status Read(model::ValueId value, int buffer, std::span<std::byte> bytes) = 0;
  // Reads of these values; it may not outlive this. Of several each has what its own Start asked for.
  virtual StatusOr<std::unique_ptr<DelayedRead>> MakeDelayedRead(std::vector<ValueBytes> values) = 0;
  // Between two values of equal bytes.
  virtual Status Copy(model::ValueId from, int from_buffer, model::ValueId to, int to_buffer) = 0;

  // Whether addresses are those of host memory that holds values in their own dtypes: host code may read and write them
  // in place.
  virtual bool is_host_memory() const = 0;
  // Copies a part of a persistent value to host memory. May be called by another thread while Run goes on, of values that
  // nothing changes meanwhile.
  virtual Status ReadPart(model::ValueId value, int64_t offset_bytes, std::span<std::byte> bytes) = 0;

  // Has the device reach memory of the host by itself as long as the result lives, which the memory and this outlive: what
  // ReadPart copies there is then none of the host's work. Null where that makes no difference, or where it cannot be had,
  // which counts as a fall-back.
  virtual std::shared_ptr<void> Pin(std::span<std::byte> memory) = 0;

  // Name of the op now or last running, for crash reports; safe to read from another thread.
  virtual const char* CurrentOperation() const = 0;
};

// Of an executable whose calls are done when they return: it is read at once.
class ImmediateRead : public DelayedRead {
 public:
  // `executable` outlives this.
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

// One whose calls are done when they return, and whose collectives are the host's. When it is destroyed no transfer is
// under way, or the network is closed.
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
  Status WaitSend(model::ValueId value, int buffer) final { return transfers_.WaitSend({value, buffer}); }
  Status PostReceive(model::ValueId value, int buffer, Communicator& edge) final {
    transfers_.PostReceive({value, buffer}, Memory(value, buffer), edge);
    return OkStatus();
  }
  Status Receive(model::ValueId value, int buffer, Communicator& edge) final {
    return transfers_.Receive({value, buffer}, Memory(value, buffer), edge);
  }

 protected:
  // What the host has of a value, in whatever form.
  virtual std::span<std::byte> Memory(model::ValueId value, int buffer) = 0;

 private:
  HostTransfers transfers_;
};

// What preparing took so far; absent where the device has nothing of the kind.
struct PreparationCounts {
  std::optional<int64_t> choices_found;   // implementations that a file of former timings chose
  std::optional<int64_t> graph_captures;  // graphs of parts of a step
};

class Backend {
 public:
  virtual ~Backend() = default;
  // "avx512_bf16", "reference" …: part of a frozen plan.
  virtual std::string kernel_level() const = 0;
  // REQUIRES: `program` and `plan` outlive the executable. RESOURCE_EXHAUSTED names the bytes that
  // could not be had.
  virtual StatusOr<std::unique_ptr<Executable>> Prepare(
      const model::Program& program, const model::MemoryPlan& plan,
      const FindCommunicator& find_communicator) = 0;
  // What of its programs runs on other than the best there is: "OPERATION WHERE: WHY". It may grow in an executable's
  // first steps.
  virtual const std::vector<std::string>& fallbacks() const = 0;
  // What collectives that the device itself carries out have cost so far, of all executables; those of the host's network
  // are not among them.
  virtual std::vector<DeviceCollectiveStatistics> CollectiveStatistics() const { return {}; }
  // The device's own collectives in flight, and its part of the rank's flight record as JSON text;
  // empty where collectives are the host's. From any thread.
  virtual std::vector<CollectiveFlight> Flights() const { return {}; }
  virtual std::string FlightRecorderJson() const { return ""; }
  // Whether the process can have another backend on this device once this one is destroyed: false where it holds
  // something of the device that cannot be given back. To be asked when its executables are destroyed.
  virtual bool gives_back() const { return true; }
  // Who makes those operations of its programs that several can make: "OPERATION: IMPLEMENTATION", once each.
  virtual const std::vector<std::string>& implementations() const = 0;
  // In which types the matmuls of the program that was prepared last are multiplied.
  virtual std::vector<ExecutedProduct> executed_products() const = 0;
  virtual PreparationCounts preparation_counts() const = 0;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_H_
