// Buffer over PJRT.
#ifndef TROUPE_KERNELS_XLA_PJRT_BUFFER_H_
#define TROUPE_KERNELS_XLA_PJRT_BUFFER_H_

#include <pjrt_c_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "kernels/xla/pjrt/client.h"
#include "model/program/value.h"

namespace troupe::kernels::xla {

// REQUIRES: dtype is not a float8 format.
PJRT_Buffer_Type TypeOf(model::DType dtype);

// Returns the bytes of an element; 0 for types whose elements are no whole bytes.
int64_t BytesOf(PJRT_Buffer_Type type);

class PjrtBuffer final : public Buffer {
 public:
  // Takes `buffer`, of `bytes` bytes as the host sees it. REQUIRES: `api` outlives the object.
  PjrtBuffer(const PJRT_Api& api, PJRT_Buffer* buffer, int64_t bytes)
      : api_(api), buffer_(buffer), bytes_(bytes) {}
  ~PjrtBuffer() override;
  PjrtBuffer(const PjrtBuffer&) = delete;
  PjrtBuffer& operator=(const PjrtBuffer&) = delete;

  int64_t bytes() const override { return bytes_; }
  Status Read(std::span<std::byte> bytes) const override;

  PJRT_Buffer* pjrt() const { return buffer_; }

 private:
  Status Copy(std::span<std::byte> bytes) const;

  const PJRT_Api& api_;
  PJRT_Buffer* const buffer_;
  const int64_t bytes_;
};

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_BUFFER_H_
