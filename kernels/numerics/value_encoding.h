// Conversion between float64 and the bytes of a dtype.
#ifndef TROUPE_KERNELS_NUMERICS_VALUE_ENCODING_H_
#define TROUPE_KERNELS_NUMERICS_VALUE_ENCODING_H_

#include <cstddef>
#include <cstdint>

#include "model/program/value.h"

namespace troupe::kernels {

// Sets numbers[i] to element i of `bytes`, which has `count` elements of `dtype`.
void Decode(model::DType dtype, const std::byte* bytes, int64_t count, double* numbers);
// The inverse of Decode: rounds to the dtype (through float32 for bfloat16 and float8; towards zero
// for int32).
void Encode(model::DType dtype, const double* numbers, int64_t count, std::byte* bytes);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_NUMERICS_VALUE_ENCODING_H_
