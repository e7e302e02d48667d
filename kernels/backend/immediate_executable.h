// The base of executables whose calls complete before they return.
#ifndef TROUPE_KERNELS_BACKEND_IMMEDIATE_EXECUTABLE_H_
#define TROUPE_KERNELS_BACKEND_IMMEDIATE_EXECUTABLE_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/backend/executable.h"
#include "kernels/backend/host_transfers.h"

namespace troupe::kernels {

// A DelayedRead that reads at once, for memory whose calls complete before they return.
class ImmediateRead : public DelayedRead {
 public:
  // `memory` must outlive this object.
  ImmediateRead(ValueMemory& memory, std::vector<ValueBytes> values)
      : memory_(memory), values_(std::move(values)) {
    for (const ValueBytes& value : values_) bytes_.emplace_back(static_cast<size_t>(value.bytes));
  }

  Status Start() override {
    for (size_t i = 0; i < values_.size(); ++i) {
      TROUPE_RETURN_IF_ERROR(memory_.Read(values_[i].value, 0, bytes_[i]));
    }
    return OkStatus();
  }
  Status Finish() override { return OkStatus(); }
  std::span<const std::byte> bytes(size_t index) const override { return bytes_[index]; }
  std::optional<DeviceStalls> stalls() const override { return std::nullopt; }

 private:
  ValueMemory& memory_;
  const std::vector<ValueBytes> values_;
  std::vector<std::vector<std::byte>> bytes_;
};

// An executable whose calls complete before they return and whose collectives are the host's. It
// may be destroyed only when no transfer is in flight or the network is closed.
class ImmediateExecutable : public Executable {
 public:
  Status Connect() final { return OkStatus(); }
  Status BeginPart(StepPart) override { return OkStatus(); }
  Status EndPart() override { return OkStatus(); }
  StatusOr<std::unique_ptr<DelayedRead>> MakeDelayedRead(std::vector<ValueBytes> values) final {
    return std::make_unique<ImmediateRead>(*this, std::move(values));
  }

  Status Finish() override { return OkStatus(); }
  DeviceCalls device_calls() const final { return {}; }

  std::shared_ptr<void> Pin(std::span<std::byte>) final { return nullptr; }

  Status AddLink(Communicator&) final { return OkStatus(); }
  Status Send(model::ValueId value, int buffer, Communicator& link) override {
    TROUPE_ASSIGN_OR_RETURN(const std::span<std::byte> memory, Memory(value, buffer));
    transfers_.Send({value, buffer}, memory, link);
    return OkStatus();
  }
  Status WaitSend(model::ValueId value, int buffer) final {
    return transfers_.WaitSend({value, buffer});
  }
  Status PostReceive(model::ValueId value, int buffer, Communicator& link) final {
    TROUPE_ASSIGN_OR_RETURN(const std::span<std::byte> memory, Memory(value, buffer));
    transfers_.PostReceive({value, buffer}, memory, link);
    return OkStatus();
  }
  Status Receive(model::ValueId value, int buffer, Communicator& link) override {
    TROUPE_ASSIGN_OR_RETURN(const std::span<std::byte> memory, Memory(value, buffer));
    return transfers_.Receive({value, buffer}, memory, link);
  }

 protected:
  // The host memory of a value, in the backend's own representation. RESOURCE_EXHAUSTED if it is
  // allocated only now and cannot be.
  virtual StatusOr<std::span<std::byte>> Memory(model::ValueId value, int buffer) = 0;

 private:
  HostTransfers transfers_;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_IMMEDIATE_EXECUTABLE_H_
