// Rows routed between ranks, in a group of one rank: copies. Those of larger groups run on the host
// and are never lowered.
#include "kernels/xla/ops/experts/choices.h"
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {
namespace {

// As many rows as the counts state; the others stay.
Status CopyRows(const Lowering& lowering) {
  Function& text = lowering.text;
  const Tensor before = lowering.read(lowering.op.outputs[0]);
  const Tensor rows = WithRows(text, lowering.In(0), before.shape[0]);
  const Tensor counted =
      text.Broadcast(Counted(text, lowering.In(1), before.shape[0]), before.shape, {0});
  lowering.Out(0, text.Select(counted, rows, before));
  return OkStatus();
}

}  // namespace

Status GatherRouted(const Lowering& lowering) { return CopyRows(lowering); }
Status ScatterRouted(const Lowering& lowering) { return CopyRows(lowering); }

// The output may be a view of the input.
Status AllToAll(const Lowering& lowering) {
  const int64_t rows = lowering.Output(0).dims[0].local;
  lowering.Out(0, WithRows(lowering.text, lowering.In(0), rows));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
