// Access of host code to values: in place if the backend computes in host memory, else through a
// copy.
#ifndef TROUPE_WORKER_EXECUTOR_HOST_VALUES_H_
#define TROUPE_WORKER_EXECUTOR_HOST_VALUES_H_

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"
#include "kernels/backend/value_memory.h"
#include "model/program/program.h"

namespace troupe {

// The bytes of a value at the time of the call.
class HostView {
 public:
  // A value in host memory is not copied: it must not change while the view is in use.
  static StatusOr<HostView> Of(const model::Program& program, kernels::ValueMemory& values,
                               model::ValueId value, int buffer = 0);

  template <typename T>
  std::span<const T> As() const {
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }

 private:
  std::vector<std::byte> copy_;
  std::span<const std::byte> bytes_;
};

// A buffer of float32 zeros through which host code fills a value of float32 or bfloat16. Movable.
class HostFill {
 public:
  // A value of float32 in host memory becomes zero at once, another at Store. `values` outlives
  // this object. REQUIRES: the value's dtype is one of the two.
  HostFill(const model::Program& program, kernels::ValueMemory& values, model::ValueId value);

  std::span<float> numbers() { return numbers_; }
  // Bytes held in addition to the value.
  size_t copied_bytes() const { return copy_.size() * sizeof(float); }

  // Makes the value equal to the filled numbers, rounded to its dtype.
  Status Store();

 private:
  kernels::ValueMemory* values_;
  model::ValueId value_;
  bool rounds_;
  std::vector<float> copy_;
  std::span<float> numbers_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_HOST_VALUES_H_
