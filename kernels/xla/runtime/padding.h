// Padding of row-major tensors in host memory.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_PADDING_H_
#define TROUPE_KERNELS_XLA_RUNTIME_PADDING_H_

#include <cstddef>
#include <span>

#include "kernels/xla/text/tensor.h"

namespace troupe::kernels::xla {

// Copies the elements of a tensor [from_shape] into one [to_shape] at the same indices, as far as
// both have them; the others of `to` stay as they are. REQUIRES: the shapes have equally many dims,
// and the spans the sizes that they state.
void CopyCommonElements(std::span<const std::byte> from, const Shape& from_shape,
                        std::span<std::byte> to, const Shape& to_shape);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_PADDING_H_
