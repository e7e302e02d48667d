#include "kernels/xla/ops/largest.h"

#include <limits>

namespace troupe::kernels::xla {
namespace {

// The bits of numbers as integers in the order of the numbers, and the inverse: of a negative
// number, all bits but the sign are inverted.
Tensor Ordered(Function& text, const Tensor& bits) {
  const Tensor sign =
      text.Binary("shift_right_arithmetic", bits, text.Constant(Element::kI32, {}, 31));
  const Tensor all_but_sign = text.Constant(Element::kI32, {}, std::numeric_limits<int32_t>::max());
  return text.Binary("xor", bits, text.Binary("and", sign, all_but_sign));
}

}  // namespace

Tensor Largest(Function& text, const Tensor& x) {
  const Tensor ordered = Ordered(text, text.Bitcast(x, Element::kI32));
  const int last = static_cast<int>(x.shape.size()) - 1;
  return text.Bitcast(Ordered(text, text.Reduce("maximum", ordered, {last})), Element::kF32);
}

}  // namespace troupe::kernels::xla
