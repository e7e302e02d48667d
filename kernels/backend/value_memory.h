// The memory that holds the values of a prepared program. A value is found by its id and a buffer,
// which is 0 for persistent values.
//
// One thread at a time may use it, except for ReadPart.
#ifndef TROUPE_KERNELS_BACKEND_VALUE_MEMORY_H_
#define TROUPE_KERNELS_BACKEND_VALUE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "model/program/program.h"

namespace troupe::kernels {

class ValueMemory {
 public:
  virtual ~ValueMemory() = default;

  // The device address of a value.
  virtual void* Address(model::ValueId value, int buffer) = 0;

  // Whether addresses point to host memory that holds values in their own dtypes, so that host code
  // may read and write them in place.
  virtual bool is_host_memory() const = 0;

  // Copy between host memory and a whole value (inputs in, losses out). Errors: INVALID_ARGUMENT if
  // `bytes` has another size than the value.
  virtual Status Write(model::ValueId value, int buffer, std::span<const std::byte> bytes) = 0;
  virtual Status Read(model::ValueId value, int buffer, std::span<std::byte> bytes) = 0;

  // Copies between two values of equal size in bytes.
  virtual Status Copy(model::ValueId from, int from_buffer, model::ValueId to, int to_buffer) = 0;

  // Copies a part of a persistent value to host memory. Any thread may call it at any time, for
  // values that nothing changes meanwhile.
  virtual Status ReadPart(model::ValueId value, int64_t offset_bytes,
                          std::span<std::byte> bytes) = 0;

  // Pins `memory`, which must outlive the result, as does this object, so that the device copies to
  // it in ReadPart without work of the host. Returns null if pinning makes no difference, or if it
  // fails, which is recorded as a fall-back.
  virtual std::shared_ptr<void> Pin(std::span<std::byte> memory) = 0;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_VALUE_MEMORY_H_
