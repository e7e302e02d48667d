#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {
namespace {

// The ids relative to this rank's slice of the vocabulary.
Tensor LocalIds(const Lowering& lowering) {
  const Tensor offset = lowering.Number(Element::kI32, [](const Lowering& rank) {
    return static_cast<double>(rank.attributes<model::VocabAttributes>().vocab_offset);
  });
  return lowering.text.Subtract(lowering.In(0), offset);
}

}  // namespace

Status Embedding(const Lowering& lowering) {
  Function& text = lowering.text;
  const Tensor ids = LocalIds(lowering), table = lowering.In(1);
  const Tensor rows = text.Gather(table, ids);
  const Tensor here = text.Binary("and", text.Compare("GE", ids, 0),
                                  text.Compare("LT", ids, static_cast<double>(table.shape[0])));
  lowering.Out(0, text.Select(text.Broadcast(here, rows.shape, {0}), rows,
                              text.Constant(rows.element, {}, 0)));
  return OkStatus();
}

// Scatter skips ids outside of the slice, also negative ones.
Status EmbeddingGrad(const Lowering& lowering) {
  Function& text = lowering.text;
  const Tensor zeros = text.Constant(Element::kF32, ShapeOf(lowering.Output(0)), 0);
  lowering.Accumulate(0, text.Scatter(zeros, LocalIds(lowering), lowering.Float(1), true));
  return OkStatus();
}

}  // namespace troupe::kernels::xla
