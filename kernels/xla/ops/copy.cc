// Operations that move nothing between ranks. Collectives of a group of one rank are copies; those
// of larger groups run on the host and are never lowered.
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {

Status Copy(const Lowering& lowering) {
  for (size_t i = 0; i < lowering.op.outputs.size(); ++i) lowering.Out(i, lowering.In(i));
  return OkStatus();
}

Status Cast(const Lowering& lowering) { return Copy(lowering); }
Status AllReduce(const Lowering& lowering) { return Copy(lowering); }
Status ReduceScatter(const Lowering& lowering) { return Copy(lowering); }
Status AllGather(const Lowering& lowering) { return Copy(lowering); }
Status ExchangeHeads(const Lowering& lowering) { return Copy(lowering); }
Status Relayout(const Lowering& lowering) { return Copy(lowering); }
Status Shift(const Lowering& lowering) { return Copy(lowering); }
Status ControlReduce(const Lowering&) { return OkStatus(); }
// XLA orders what it runs; a collective of the host is awaited there.
Status Wait(const Lowering&) { return OkStatus(); }

}  // namespace troupe::kernels::xla
