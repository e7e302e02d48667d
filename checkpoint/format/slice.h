// A slice of a global tensor. Every rank's part of a checkpoint consists of slices, under any
// layout.
//
// Shapes and offsets have one entry per dim; a scalar has none. Data are row-major and contiguous.
#ifndef TROUPE_CHECKPOINT_FORMAT_SLICE_H_
#define TROUPE_CHECKPOINT_FORMAT_SLICE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

using Extents = std::vector<int64_t>;

// A box of indices: [offset, offset + shape) in every dim.
struct Box {
  Extents offset;
  Extents shape;
  bool operator==(const Box&) const = default;
};

struct GlobalSlice {
  std::string name;   // global: "exp_avg.model.norm.weight"
  std::string dtype;  // safetensors': "F32"
  Extents global_shape;
  Box box;  // part of [0, global_shape)
  bool operator==(const GlobalSlice&) const = default;
};

// Returns the bits of one element of a safetensors dtype ("F32" 32, "F4" 4). INVALID_ARGUMENT for
// an unknown dtype.
StatusOr<int64_t> DtypeBits(std::string_view dtype);

// Returns the position of `dtype` in the sort order of safetensors' own writer, widest first.
// REQUIRES: a known dtype.
int DtypeOrder(std::string_view dtype);

// Returns the product of the extents. INVALID_ARGUMENT if one is negative or the product is above
// 2^63 - 1.
StatusOr<int64_t> Elements(const Extents& shape);

// Returns the bytes of a dense tensor. INVALID_ARGUMENT as for Elements and DtypeBits, or if the
// number of bits is not a multiple of 8.
StatusOr<int64_t> DenseBytes(const Extents& shape, std::string_view dtype);

// INVALID_ARGUMENT names tensor and values unless the name is 1–1024 printable ASCII characters
// without spaces, the dtype is known, and the box is within the global shape.
Status ValidateSlice(const GlobalSlice& slice);

// Returns the intersection, absent if it is empty. REQUIRES: both boxes have the same number of
// dims.
std::optional<Box> Intersect(const Box& a, const Box& b);

// Returns offset and shape for messages: "[0, 128] + [64, 256]".
std::string ToString(const Box& box);
std::string ToString(const Extents& extents);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_FORMAT_SLICE_H_
