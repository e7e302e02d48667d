#include "model/blocks/head.h"

#include <algorithm>

#include "model/blocks/parameters.h"

namespace troupe::model {

int NumHeadChunks(int64_t rows, int64_t chunk_rows) {
  return static_cast<int>(std::max<int64_t>(1, rows / chunk_rows));
}

void BuildHead(ProgramBuilder& builder, const ModelConfig& config, const HeadInputs& inputs) {
  const VocabAttributes vocab = VocabularySlice(builder, config);
  const ValueId normed = builder.EmitAll(OpKind::kRmsNorm, NormAttributes{config.norm_eps},
                                         {inputs.x, inputs.norm}, {"head.normed", "head.rstd"})[0];
  const ValueId copied = builder.CopyRows(normed, "head.copied");
  if (!builder.status().ok()) return;
  const int64_t rows = builder.program().value(copied).dims[0].local;
  const LossAttributes loss{inputs.z_loss_coef};
  const int chunks = NumHeadChunks(rows, inputs.chunk_rows);
  for (int c = 0; c < chunks; ++c) {
    const Range range = BalancedRange(rows, chunks, c);
    const std::string name = chunks == 1 ? "head." : fmt::format("head.rows{}.", c);
    // With one chunk use the whole value: a view of everything would only be a second name for it.
    const auto part = [&](ValueId whole, const char* what) {
      return chunks == 1 ? whole : builder.Rows(whole, range.begin, range.end, name + what);
    };
    if (chunks > 1) builder.SetRowChunk(c);
    const ValueId x = part(copied, "copied");
    const ValueId targets = part(inputs.targets, "targets");
    const ValueId weights = part(inputs.weights, "weights");
    const ValueId logits =
        builder.Emit(OpKind::kMatmul, NoAttributes(), {x, inputs.table}, name + "logits");
    if (builder.tensor_degree() == 1) {
      const std::vector<ValueId> made =
          builder.EmitAll(OpKind::kSoftmaxStatsAndGrad, loss, {logits, targets, weights},
                          {"d/" + name + "logits", name + "max", name + "sums"});
      builder.EmitInto(inputs.totals, OpKind::kCrossEntropy, loss, {made[1], made[2], weights});
      continue;
    }
    const std::vector<ValueId> stats = builder.EmitAll(
        OpKind::kSoftmaxStats, vocab, {logits, targets}, {name + "max", name + "sums"});
    const ValueId global_max = builder.AllReduce(stats[0], ReduceKind::kMax, name + "global_max");
    const ValueId rescaled = builder.Emit(OpKind::kSoftmaxRescale, NoAttributes(),
                                          {stats[1], stats[0], global_max}, name + "sums.rescaled");
    const ValueId sums = builder.AllReduce(rescaled, ReduceKind::kSum, name + "sums.global");
    builder.EmitInto(inputs.totals, OpKind::kCrossEntropy, loss, {global_max, sums, weights});
  }
  builder.SetRowChunk(-1);
}

}  // namespace troupe::model
