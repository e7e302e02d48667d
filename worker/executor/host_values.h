// Values as host code reads and fills them: in place where a backend computes in the host's memory, else by way of a copy.
#ifndef TROUPE_WORKER_EXECUTOR_HOST_VALUES_H_
#define TROUPE_WORKER_EXECUTOR_HOST_VALUES_H_

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "kernels/backend.h"
#include "model/program/program.h"

namespace troupe {

// The bytes of a value as they are now.
class HostView {
 public:
  // What it looks at must not change while it is looked at, where it lies in host memory.
  static StatusOr<HostView> Of(const model::Program& program, kernels::Executable& executable,
                               model::ValueId value, int buffer = 0);

  template <typename T>
  std::span<const T> As() const {
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

 private:
  std::vector<std::byte> copy_;
  std::span<const std::byte> bytes_;
};

// Zeros for host code to fill a value with. Movable.
class HostFill {
 public:
  // The value is zeros from now on where it lies in host memory, else from Store on. The executable outlives it.
  HostFill(const model::Program& program, kernels::Executable& executable, model::ValueId value);

  std::span<std::byte> bytes() { return bytes_; }
  template <typename T>
  T* As() {
    return reinterpret_cast<T*>(bytes_.data());
  }
  // Bytes that it keeps beside the value.
  size_t copied_bytes() const { return copy_.size(); }

  // The value is what was filled in.
  Status Store();

 private:
  kernels::Executable* executable_;
  model::ValueId value_;
  std::vector<std::byte> copy_;
  std::span<std::byte> bytes_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_HOST_VALUES_H_
