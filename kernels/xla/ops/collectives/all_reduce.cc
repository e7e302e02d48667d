// y = the sum, or the maximum, of the group's x; each of a bucket by itself. XLA combines them.
#include "kernels/xla/ops/collectives/bfloat16_wire.h"
#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/ops/ranks.h"
#include "kernels/xla/ops/slice_group.h"

namespace troupe::kernels::xla {

Status AllReduce(const Lowering& lowering) {
  if (!HasPeers(lowering)) return Copy(lowering);
  const auto& attributes = lowering.attributes<model::AllReduceAttributes>();
  Ranks& ranks = lowering.ranks;
  const Function::Groups groups = PartitionGroups(lowering);
  const char* const kind = attributes.reduce == model::ReduceKind::kMax ? "maximum" : "add";
  for (size_t i = 0; i < lowering.inputs(); ++i) {
    const Tensor x = ranks.ReadPadded(lowering.op.inputs[i]);
    if (ElementsOf(x.shape) == 0) continue;
    // Padding is zero on all ranks, and so is its sum and its maximum.
    ranks.WritePadded(lowering.op.outputs[i], attributes.wire == model::DType::kBFloat16
                                                  ? SumOverBfloat16(lowering.text, x, groups)
                                                  : lowering.text.AllReduce(kind, x, groups));
  }
  return OkStatus();
}

}  // namespace troupe::kernels::xla
