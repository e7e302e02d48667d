// A tensor of a StableHLO program's text: its name, element type and shape.
#ifndef TROUPE_KERNELS_XLA_TEXT_TENSOR_H_
#define TROUPE_KERNELS_XLA_TEXT_TENSOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "model/program/value.h"

namespace troupe::kernels::xla {

enum class Element : uint8_t { kF32, kBF16, kF64, kI32, kI1, kU32, kU64 };
const char* Name(Element element);  // "f32"

// REQUIRES: `dtype` is not a float8 format.
Element ElementOf(model::DType dtype);

using Shape = std::vector<int64_t>;
int64_t ElementsOf(const Shape& shape);

struct Tensor {
  std::string name;  // "%12"
  Element element = Element::kF32;
  Shape shape;  // empty: a scalar
  bool operator==(const Tensor&) const = default;
};

// "tensor<4x8xf32>".
std::string TypeText(Element element, const Shape& shape);
inline std::string TypeText(const Tensor& tensor) { return TypeText(tensor.element, tensor.shape); }

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_TEXT_TENSOR_H_
