// The storage of one root value in one buffer: a tensor on the device and bytes in host memory, of
// which one or both are current. Collectives and transfers that leave the slice use the host's. On
// the device the tensor may be padded with zeros; the bytes in host memory are the rank's own.
// Memory on the device is kept while the host's bytes are newer, for the run that replaces them.
// Host memory of a large value is freed once the device has its contents; a caller's memory is not.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_VALUE_STORAGE_H_
#define TROUPE_KERNELS_XLA_RUNTIME_VALUE_STORAGE_H_

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>

#include "base/status.h"
#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/pjrt/client.h"
#include "kernels/xla/runtime/padding.h"
#include "model/program/value.h"

namespace troupe::kernels::xla {

// Zeros in host memory. Pages of a large block that nobody writes are not allocated.
class HostMemory {
 public:
  HostMemory() = default;
  // Errors: RESOURCE_EXHAUSTED, with the number of bytes that could not be allocated.
  static StatusOr<HostMemory> Make(size_t bytes) {
    HostMemory memory;
    memory.start_.reset(std::calloc(std::max<size_t>(bytes, 1), 1));
    if (memory.start_ == nullptr)
      return ResourceExhausted("cannot allocate {} bytes of host memory for a value", bytes);
    memory.bytes_ = {static_cast<std::byte*>(memory.start_.get()), bytes};
    return memory;
  }
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* start) const { std::free(start); }
  };
  std::unique_ptr<void, Free> start_;
  std::span<std::byte> bytes_;
};

// Not thread-safe. Contents are zero at first. Errors are those of the client, and
// RESOURCE_EXHAUSTED, with the number of bytes, if host memory cannot be allocated; the contents
// are then as before.
class ValueStorage {
 public:
  // `shape` is the tensor's on the device. `host`: memory for the value's bytes; null: it is
  // allocated when it is first needed.
  ValueStorage(const model::Value& value, Shape shape, std::byte* host)
      : value_(&value), shape_(std::move(shape)), host_(host) {}

  // The current contents on the device; copies them there if the host's are newer.
  StatusOr<const Buffer*> OnDevice(Client& client, int device) {
    if (device_is_current_) return device_.get();
    TROUPE_ASSIGN_OR_RETURN(std::span<const std::byte> bytes, HostBytes());
    HostMemory padded;
    if (is_padded()) {
      TROUPE_ASSIGN_OR_RETURN(padded, HostMemory::Make(PaddedBytes()));
      CopyCommonElements(bytes, ShapeOf(*value_), padded.bytes(), shape_);
      bytes = padded.bytes();
    }
    device_.reset();
    TROUPE_ASSIGN_OR_RETURN(device_, client.Upload(value_->dtype, shape_, bytes, device));
    device_is_current_ = true;
    FreeHostMemory();
    return device_.get();
  }

  // Memory on the device whose contents a run replaces without reading them.
  StatusOr<const Buffer*> ToReplace(Client& client, int device) {
    if (device_ == nullptr) {
      TROUPE_ASSIGN_OR_RETURN(const HostMemory zeros, HostMemory::Make(PaddedBytes()));
      TROUPE_ASSIGN_OR_RETURN(device_, client.Upload(value_->dtype, shape_, zeros.bytes(), device));
    }
    return device_.get();
  }

  // The current contents in host memory; copies them there if the device's are newer.
  StatusOr<std::span<std::byte>> OnHost() {
    TROUPE_ASSIGN_OR_RETURN(const std::span<std::byte> bytes, HostBytes());
    if (host_is_current_) return bytes;
    if (is_padded()) {
      TROUPE_ASSIGN_OR_RETURN(const HostMemory padded, HostMemory::Make(PaddedBytes()));
      TROUPE_RETURN_IF_ERROR(device_->Read(padded.bytes()));
      CopyCommonElements(padded.bytes(), shape_, bytes, ShapeOf(*value_));
    } else {
      TROUPE_RETURN_IF_ERROR(device_->Read(bytes));
    }
    host_is_current_ = true;
    return bytes;
  }

  // The bytes in host memory have been changed, or will be.
  void NoteWrittenOnHost() {
    device_is_current_ = false;
    host_is_current_ = true;
  }
  // A run has produced the contents.
  void SetOnDevice(std::unique_ptr<Buffer> buffer) {
    device_ = std::move(buffer);
    device_is_current_ = true;
    host_is_current_ = false;
    FreeHostMemory();
  }
  // Nobody reads the contents any more: frees the device's memory.
  void Drop() {
    NoteWrittenOnHost();
    device_.reset();
  }

  // Valid until the next call of OnDevice or SetOnDevice.
  StatusOr<std::span<std::byte>> HostBytes() {
    const auto count = static_cast<size_t>(value_->bytes());
    if (host_ == nullptr) {
      TROUPE_ASSIGN_OR_RETURN(own_, HostMemory::Make(count));
      host_ = own_.bytes().data();
    }
    return std::span<std::byte>(host_, count);
  }

 private:
  static constexpr size_t kLargeBytes = 1 << 20;

  // REQUIRES: the device's contents are current.
  void FreeHostMemory() {
    if (own_.bytes().size() < kLargeBytes) return;
    own_ = HostMemory();
    host_ = nullptr;
    host_is_current_ = false;
  }
  bool is_padded() const { return shape_ != ShapeOf(*value_); }
  size_t PaddedBytes() const {
    return static_cast<size_t>(ElementsOf(shape_) * model::SizeOf(value_->dtype));
  }

  const model::Value* value_;
  Shape shape_;
  std::byte* host_;
  HostMemory own_;
  std::unique_ptr<Buffer> device_;  // null: there is no memory on the device
  bool device_is_current_ = false, host_is_current_ = true;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_VALUE_STORAGE_H_
