#include "kernels/xla/runtime/padding.h"

#include <algorithm>
#include <cstring>

namespace troupe::kernels::xla {

void CopyCommonElements(std::span<const std::byte> from, const Shape& from_shape,
                        std::span<std::byte> to, const Shape& to_shape) {
  if (from.empty() || to.empty()) return;
  if (from_shape.size() <= 1 || from_shape == to_shape) {
    std::memcpy(to.data(), from.data(), std::min(from.size(), to.size()));
    return;
  }
  const Shape from_row(from_shape.begin() + 1, from_shape.end());
  const Shape to_row(to_shape.begin() + 1, to_shape.end());
  const size_t from_bytes = from.size() / static_cast<size_t>(from_shape[0]);
  const size_t to_bytes = to.size() / static_cast<size_t>(to_shape[0]);
  const auto rows = static_cast<size_t>(std::min(from_shape[0], to_shape[0]));
  for (size_t row = 0; row < rows; ++row) {
    CopyCommonElements(from.subspan(row * from_bytes, from_bytes), from_row,
                       to.subspan(row * to_bytes, to_bytes), to_row);
  }
}

}  // namespace troupe::kernels::xla
