// A strided copy of rows.
#ifndef TROUPE_KERNELS_EXCHANGE_ROW_MOVE_H_
#define TROUPE_KERNELS_EXCHANGE_ROW_MOVE_H_

#include <cstdint>

namespace troupe::kernels {

// Copies `rows` of `row_bytes` each. The first row is at offset `from` of the source and goes to
// offset `to` of the destination, in bytes; the others follow at the strides.
struct RowMove {
  int64_t from = 0, to = 0;
  int64_t from_stride = 0, to_stride = 0;  // in bytes
  int64_t rows = 0, row_bytes = 0;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_EXCHANGE_ROW_MOVE_H_
