// The storage of one root value in one buffer: a tensor on the device and bytes in host memory, of
// which one or both are current. Collectives and transfers between ranks use the host's.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_VALUE_STORAGE_H_
#define TROUPE_KERNELS_XLA_RUNTIME_VALUE_STORAGE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/pjrt/client.h"
#include "model/program/value.h"

namespace troupe::kernels::xla {

// Not thread-safe. Contents are zero at first.
class ValueStorage {
 public:
  // `host`: memory for the value's bytes; null: it is allocated when it is first needed.
  ValueStorage(const model::Value& value, std::byte* host) : value_(&value), host_(host) {}

  // The current contents on the device; copies them there if the host's are newer.
  StatusOr<const Buffer*> OnDevice(Client& client, int device) {
    if (device_ == nullptr) {
      TROUPE_ASSIGN_OR_RETURN(device_,
                              client.Upload(value_->dtype, ShapeOf(*value_), HostBytes(), device));
    }
    return device_.get();
  }

  // The current contents in host memory; copies them there if the device's are newer.
  StatusOr<std::span<std::byte>> OnHost() {
    const std::span<std::byte> bytes = HostBytes();
    if (!host_is_current_) {
      TROUPE_RETURN_IF_ERROR(device_->Read(bytes));
      host_is_current_ = true;
    }
    return bytes;
  }

  // The bytes in host memory have been changed, or will be.
  void NoteWrittenOnHost() {
    device_.reset();
    host_is_current_ = true;
  }
  // A run has produced the contents.
  void SetOnDevice(std::unique_ptr<Buffer> buffer) {
    device_ = std::move(buffer);
    host_is_current_ = false;
  }
  // Nobody reads the contents any more: frees the device's memory.
  void Drop() { NoteWrittenOnHost(); }

  std::span<std::byte> HostBytes() {
    const auto count = static_cast<size_t>(value_->bytes());
    if (host_ == nullptr) {
      own_.resize(count);
      host_ = own_.data();
    }
    return {host_, count};
  }

 private:
  const model::Value* value_;
  std::byte* host_;
  std::vector<std::byte> own_;
  std::unique_ptr<Buffer> device_;  // null: only the host's are current
  bool host_is_current_ = true;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_VALUE_STORAGE_H_
