// load[b,e] = number of times this rank's rows of sample b choose e; load[b,E] = Σ of their
// weights.
#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {

Status RouterLoad(const Lowering& lowering) {
  Function& text = lowering.text;
  const auto& router = lowering.attributes<model::RouterAttributes>();
  const Tensor experts = lowering.In(0);
  const int64_t rows = experts.shape[0], samples = lowering.Output(0).dims[0].local;
  const auto first = [](const Lowering& rank) {
    return static_cast<double>(rank.attributes<model::RouterAttributes>().first_row);
  };
  // f[R,…] → f[B,…]: the sum of each sample's rows.
  const auto by_sample = [&](const Tensor& x) {
    const Tensor all = lowering.AmongZeros(x, first, samples * router.local_tokens);
    return text.Reduce("add", text.Reshape(all, {samples, router.local_tokens, x.shape[1]}), {1});
  };
  const Shape pairs = {rows, experts.shape[1], router.experts};
  const Tensor chosen = text.Compare("EQ", text.Broadcast(experts, pairs, {0, 1}),
                                     text.Iota(Element::kI32, pairs, 2));
  const Tensor choices = text.Reduce("add", text.Convert(chosen, Element::kF32), {1});
  const Tensor weights = text.Reshape(lowering.RowsFrom(lowering.In(1), first, rows), {rows, 1});
  lowering.Out(0, text.Concatenate({by_sample(choices), by_sample(weights)}, 1));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
