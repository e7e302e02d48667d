#include "kernels/xla/ops/collectives/bfloat16_wire.h"

namespace troupe::kernels::xla {

Tensor ScatterOverBfloat16(Function& text, const Tensor& x, const Function::Groups& groups) {
  const auto ranks = static_cast<int64_t>(groups[0].size());
  const Tensor terms = text.AllToAll(text.Convert(x, Element::kBF16), groups);
  Shape blocks = x.shape;
  blocks[0] /= ranks;
  blocks.insert(blocks.begin(), ranks);
  return text.Reduce("add", text.Convert(text.Reshape(terms, blocks), Element::kF32), {0});
}

Tensor SumOverBfloat16(Function& text, const Tensor& x, const Function::Groups& groups) {
  const auto ranks = static_cast<int64_t>(groups[0].size());
  const int64_t count = ElementsOf(x.shape), block = (count + ranks - 1) / ranks;
  const Tensor flat = text.Pad(text.Reshape(x, {count}), 0, 0, ranks * block - count);
  const Tensor sum = text.Convert(ScatterOverBfloat16(text, flat, groups), Element::kBF16);
  const Tensor all = text.Slice(text.AllGather(sum, groups), 0, 0, count);
  return text.Reshape(text.Convert(all, Element::kF32), x.shape);
}

}  // namespace troupe::kernels::xla
