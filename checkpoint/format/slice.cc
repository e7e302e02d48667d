#include "checkpoint/format/slice.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace troupe {
namespace {

struct DtypeInfo {
  std::string_view name;
  int64_t bits;
};

// Dtypes in the order of safetensors' writer.
constexpr DtypeInfo kDtypes[] = {
    {"U64", 64},    {"I64", 64},        {"F64", 64},        {"C64", 64},    {"F32", 32},
    {"U32", 32},    {"I32", 32},        {"BF16", 16},       {"F16", 16},    {"U16", 16},
    {"I16", 16},    {"F8_E5M2FNUZ", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E8M0", 8}, {"F8_E4M3", 8},
    {"F8_E5M2", 8}, {"I8", 8},          {"U8", 8},          {"F6_E3M2", 6}, {"F6_E2M3", 6},
    {"F4", 4},      {"BOOL", 8},
};

const DtypeInfo* FindDtype(std::string_view dtype) {
  const auto found = std::find_if(std::begin(kDtypes), std::end(kDtypes),
                                  [&](const DtypeInfo& info) { return info.name == dtype; });
  return found == std::end(kDtypes) ? nullptr : found;
}

}  // namespace

StatusOr<int64_t> DtypeBits(std::string_view dtype) {
  const DtypeInfo* info = FindDtype(dtype);
  if (info == nullptr) {
    return InvalidArgument("dtype \"{}\" is not a safetensors dtype", dtype.substr(0, 64));
  }
  return info->bits;
}

int DtypeOrder(std::string_view dtype) {
  const DtypeInfo* info = FindDtype(dtype);
  TROUPE_CHECK(info != nullptr, "dtype {}", dtype);
  return static_cast<int>(info - kDtypes);
}

StatusOr<int64_t> Elements(const Extents& shape) {
  for (const int64_t extent : shape) {
    if (extent < 0) return InvalidArgument("shape {} has an extent below 0", ToString(shape));
  }
  // An extent of 0 makes the product 0, however large the other extents are.
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t product = 1;
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(product, extent, &product)) {
      return InvalidArgument("shape {} has more than 2^63 - 1 elements", ToString(shape));
    }
  }
  return product;
}

StatusOr<int64_t> DenseBytes(const Extents& shape, std::string_view dtype) {
  TROUPE_ASSIGN_OR_RETURN(const int64_t item_bits, DtypeBits(dtype));
  TROUPE_ASSIGN_OR_RETURN(const int64_t elements, Elements(shape));
  int64_t bits = 0;
  if (__builtin_mul_overflow(elements, item_bits, &bits)) {
    return InvalidArgument("shape {} of {} has more than 2^60 bytes", ToString(shape), dtype);
  }
  if (bits % 8 != 0) {
    return InvalidArgument("shape {} of {} has {} bits, not a whole number of bytes",
                           ToString(shape), dtype, bits);
  }
  return bits / 8;
}

Status ValidateSlice(const GlobalSlice& slice) {
  if (slice.name.empty() || slice.name.size() > 1024) {
    return InvalidArgument("tensor name has {} characters, must have 1 to 1024", slice.name.size());
  }
  for (const char c : slice.name) {
    if (c < 0x21 || c > 0x7E) {
      return InvalidArgument("tensor name has byte {:#04x}, which is not printable ASCII",
                             static_cast<unsigned char>(c));
    }
  }
  const size_t dims = slice.global_shape.size();
  if (slice.box.offset.size() != dims || slice.box.shape.size() != dims) {
    return InvalidArgument("tensor {}: slice {} does not have the {} dims of global_shape {}",
                           slice.name, ToString(slice.box), dims, ToString(slice.global_shape));
  }
  if (const auto bytes = DenseBytes(slice.global_shape, slice.dtype); !bytes.ok()) {
    return Annotate(bytes.status(), fmt::format("tensor {}: global_shape", slice.name));
  }
  if (const auto bytes = DenseBytes(slice.box.shape, slice.dtype); !bytes.ok()) {
    return Annotate(bytes.status(), fmt::format("tensor {}", slice.name));
  }
  for (size_t d = 0; d < dims; ++d) {
    const int64_t offset = slice.box.offset[d], extent = slice.box.shape[d];
    // offset + extent could overflow; the difference cannot, because all three are at least 0 here.
    if (offset < 0 || offset > slice.global_shape[d] || extent > slice.global_shape[d] - offset) {
      return InvalidArgument("tensor {}: slice {} is not within global_shape {} (dim {})",
                             slice.name, ToString(slice.box), ToString(slice.global_shape), d);
    }
  }
  return OkStatus();
}

std::optional<Box> Intersect(const Box& a, const Box& b) {
  TROUPE_CHECK(a.offset.size() == b.offset.size());
  Box common;
  for (size_t d = 0; d < a.offset.size(); ++d) {
    const int64_t begin = std::max(a.offset[d], b.offset[d]);
    const int64_t end = std::min(a.offset[d] + a.shape[d], b.offset[d] + b.shape[d]);
    if (begin >= end) return std::nullopt;
    common.offset.push_back(begin);
    common.shape.push_back(end - begin);
  }
  return common;
}

std::string ToString(const Extents& extents) {
  return fmt::format("[{}]", fmt::join(extents, ", "));
}

std::string ToString(const Box& box) {
  return fmt::format("{} + {}", ToString(box.offset), ToString(box.shape));
}

}  // namespace troupe
