// Values between float64 and the bytes of a dtype.
#ifndef TROUPE_KERNELS_VALUE_ENCODING_H_
#define TROUPE_KERNELS_VALUE_ENCODING_H_

#include <cstddef>
#include <cstdint>

#include "model/program/value.h"

namespace troupe::kernels {

// numbers[i] = element i of `bytes`, `count` elements of `dtype`.
void Decode(model::DType dtype, const std::byte* bytes, int64_t count, double* numbers);
// The inverse, rounded to the dtype (float32 first where that is bfloat16 or float8; towards zero for int32).
void Encode(model::DType dtype, const double* numbers, int64_t count, std::byte* bytes);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_VALUE_ENCODING_H_
