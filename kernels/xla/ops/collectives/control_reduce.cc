// The words of all ranks are gathered, and each rank reduces them lane by lane, as
// kernels/backend/reduce_control_word.cc does: a device may lack a maximum of float64 between
// ranks.
#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/ops/ranks.h"
#include "kernels/xla/ops/slice_group.h"
#include "model/program/control_word.h"

namespace troupe::kernels::xla {

Status ControlReduce(const Lowering& lowering) {
  if (!HasPeers(lowering)) return OkStatus();
  Function& text = lowering.text;
  Ranks& ranks = lowering.ranks;
  const Tensor own = text.Reshape(lowering.In(0), {1, model::kControlLanes});
  const Tensor all = text.AllGather(own, PartitionGroups(lowering));
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
