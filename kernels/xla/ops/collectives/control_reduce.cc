// The words of all ranks are gathered, and each rank reduces them lane by lane, as
// kernels/backend/reduce_control_word.cc does: a device may lack a maximum of float64 between
// ranks. A TPU sends float64 as two tensors, so a word is sent as one of float32: the parts of a
// number whose sum it is. A finite number beyond float32's range is sent as the largest float32.
#include <limits>

#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/ops/ranks.h"
#include "kernels/xla/ops/slice_group.h"
#include "model/program/control_word.h"

namespace troupe::kernels::xla {

namespace {

constexpr int kFloatParts = 3;  // a part has 24 bits, float64 has 53

// x[word] as float32[part, word].
Tensor InParts(Function& text, const Tensor& x) {
  const int64_t words = x.shape[0];
  std::vector<Tensor> parts;
  const Tensor most = text.Constant(Element::kF64, x.shape, std::numeric_limits<float>::max());
  const Tensor least = text.Constant(Element::kF64, x.shape, -std::numeric_limits<float>::max());
  const Tensor within = text.Binary("minimum", text.Binary("maximum", x, least), most);
  Tensor rest = text.Select(text.Unary("is_finite", x), within, x);
  for (int p = 0; p < kFloatParts; ++p) {
    const Tensor part = text.Convert(rest, Element::kF32);
    parts.push_back(text.Reshape(part, {1, words}));
    const Tensor left = text.Subtract(rest, text.Convert(part, Element::kF64));
    const Tensor none = text.Constant(Element::kF64, rest.shape, 0);
    rest = text.Select(text.Unary("is_finite", left), left, none);
  }
  return text.Concatenate(parts, 0);
}

// The sums of the parts, x[rank, part, word], smallest parts first: float64[rank, word].
Tensor OfParts(Function& text, const Tensor& x) {
  Tensor sum;
  for (int p = kFloatParts - 1; p >= 0; --p) {
    const Tensor part = text.Reshape(text.Slice(x, 1, p, p + 1), {x.shape[0], x.shape[2]});
    const Tensor wide = text.Convert(part, Element::kF64);
    sum = p == kFloatParts - 1 ? wide : text.Add(sum, wide);
  }
  return sum;
}

}  // namespace

Status ControlReduce(const Lowering& lowering) {
  if (!HasPeers(lowering)) return OkStatus();
  Function& text = lowering.text;
  Ranks& ranks = lowering.ranks;
  const Tensor own =
      text.Reshape(InParts(text, lowering.In(0)), {1, kFloatParts, model::kControlLanes});
  const Tensor all = OfParts(text, text.AllGather(own, PartitionGroups(lowering)));
  const auto lanes = [&](const char* kind, int first, int last) {
    return text.Reduce(kind, text.Slice(all, 1, first, last + 1), {0});
  };
  ranks.WritePadded(
      lowering.op.inputs[0],
      text.Concatenate(
          {lanes("add", 0, model::kLastSum), lanes("maximum", model::kLastSum + 1, model::kLastMax),
           lanes("minimum", model::kLastMax + 1, model::kControlLanes - 1)},
          0));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
