#include "kernels/xla/text/tensor.h"

#include <fmt/format.h>

#include "base/check.h"

namespace troupe::kernels::xla {

const char* Name(Element element) {
  switch (element) {
    case Element::kF32:
      return "f32";
    case Element::kBF16:
      return "bf16";
    case Element::kF64:
      return "f64";
    case Element::kI32:
      return "i32";
    case Element::kI1:
      return "i1";
    case Element::kU32:
      return "ui32";
    case Element::kU64:
      return "ui64";
  }
  return "";
}

Element ElementOf(model::DType dtype) {
  switch (dtype) {
    case model::DType::kFloat32:
      return Element::kF32;
    case model::DType::kBFloat16:
      return Element::kBF16;
    case model::DType::kFloat64:
      return Element::kF64;
    case model::DType::kInt32:
      return Element::kI32;
    case model::DType::kFloat8E4M3:
    case model::DType::kFloat8E5M2:
      break;
  }
  TROUPE_CHECK(false, "float8 is not lowered");
  return Element::kF32;
}

int64_t ElementsOf(const Shape& shape) {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

std::string TypeText(Element element, const Shape& shape) {
  std::string text = "tensor<";
  for (const int64_t extent : shape) text += fmt::format("{}x", extent);
  return text + Name(element) + ">";
}

}  // namespace troupe::kernels::xla
