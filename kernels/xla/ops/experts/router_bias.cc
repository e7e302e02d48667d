// bias_e += rate · sign(mean - routed_e), unless the step is not applied.
#include "kernels/xla/ops/control_lanes.h"
#include "kernels/xla/ops/experts/choices.h"
#include "kernels/xla/ops/lowering.h"
#include "model/program/router_attributes.h"

namespace troupe::kernels::xla {

Status RouterBias(const Lowering& lowering) {
  Function& text = lowering.text;
  const double rate = lowering.attributes<model::RouterBiasAttributes>().rate;
  const Tensor totals = lowering.In(1), bias = lowering.In(2);
  const Tensor routed = text.Slice(totals, 0, model::kRouterLanes, totals.shape[0]);
  // Compares whole numbers, so that equality with the mean is exact.
  const Tensor all = text.Multiply(routed, static_cast<double>(bias.shape[0]));
  const Tensor sign = text.Unary("sign", text.Subtract(SumOf(text, routed), all));
  const Tensor moved = text.Add(bias, text.Multiply(text.Convert(sign, Element::kF32), rate));
  lowering.Store(lowering.op.inputs[2],
                 text.Select(UpdateApplies(text, lowering.In(0)), moved, bias));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
