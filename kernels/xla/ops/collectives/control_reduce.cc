// The words of all ranks are gathered, and each rank reduces them lane by lane, as
// kernels/backend/reduce_control_word.cc does: a device may lack a maximum of float64 between
// ranks. A TPU sends float64 as two tensors, so the bits of the numbers are sent, as one.
#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/ops/ranks.h"
#include "kernels/xla/ops/slice_group.h"
#include "model/program/control_word.h"

namespace troupe::kernels::xla {

Status ControlReduce(const Lowering& lowering) {
  if (!HasPeers(lowering)) return OkStatus();
  Function& text = lowering.text;
  Ranks& ranks = lowering.ranks;
  const Tensor bits = text.Bitcast(lowering.In(0), Element::kU32);  // [lane, 2]
  const Tensor own = text.Reshape(bits, {1, model::kControlLanes, 2});
  const Tensor all =
      text.Bitcast(text.AllGather(own, PartitionGroups(lowering)), Element::kF64);  // [rank, lane]
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
