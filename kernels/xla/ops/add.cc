#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {

Status Add(const Lowering& lowering) {
  lowering.Out(0, lowering.text.Add(lowering.Float(0), lowering.Float(1)));
  return OkStatus();
}

Status Accumulate(const Lowering& lowering) {
  lowering.Accumulate(0, lowering.In(0));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
