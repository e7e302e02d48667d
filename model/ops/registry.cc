#include <array>

#include "model/ops/kinds.h"
#include "model/ops/rules.h"

namespace troupe::model {

const OpRules& RulesOf(OpKind kind) {
  // In the order of OpKind.
  static const std::array<OpRules, kNumOpKinds> kRules = {EmbeddingRules(),
                                                          EmbeddingGradRules(),
                                                          RmsNormRules(),
                                                          AddRmsNormRules(),
                                                          RmsNormGradRules(),
                                                          AddRules(),
                                                          MatmulRules(),
                                                          MatmulGradInputRules(),
                                                          MatmulGradWeightRules(),
                                                          RopeRules(),
                                                          AttentionRules(),
                                                          AttentionGradRules(),
                                                          SplitHeadsRules(),
                                                          JoinHeadsRules(),
                                                          ShiftRules(),
                                                          AttentionPartRules(),
                                                          AttentionPartGradRules(),
                                                          SwiGluRules(),
                                                          SwiGluGradRules(),
                                                          SoftmaxStatsRules(),
                                                          SoftmaxRescaleRules(),
                                                          CrossEntropyRules(),
                                                          CrossEntropyGradRules(),
                                                          SoftmaxRescaleGradRules(),
                                                          SoftmaxStatsGradRules(),
                                                          SoftmaxStatsAndGradRules(),
                                                          CopyRules(),
                                                          AllReduceRules(),
                                                          ReduceScatterRules(),
                                                          AllGatherRules(),
                                                          ExchangeHeadsRules(),
                                                          WaitRules(),
                                                          AccumulateRules(),
                                                          CastRules(),
                                                          ControlTotalsRules(),
                                                          ControlRoutedRules(),
                                                          SumOfSquaresRules(),
                                                          ControlReduceRules(),
                                                          ControlHaltRules(),
                                                          AdamWRules(),
                                                          RouterLogitsRules(),
                                                          RouterLogitsGradInputRules(),
                                                          RouterLogitsGradWeightRules(),
                                                          RouterTopKRules(),
                                                          RouterTopKGradRules(),
                                                          RouterLossRules(),
                                                          RouterLossGradRules(),
                                                          PermuteRules(),
                                                          PermuteGradRules(),
                                                          AllToAllRules(),
                                                          GroupedMatmulRules(),
                                                          GroupedMatmulGradInputRules(),
                                                          GroupedMatmulGradWeightRules(),
                                                          CombineRules(),
                                                          CombineGradRules(),
                                                          RouterBiasRules(),
                                                          RouterLoadRules(),
                                                          GatherRoutedRules(),
                                                          ScatterRoutedRules(),
                                                          RouterSlotsRules(),
                                                          DropoutRules(),
                                                          RelayoutRules(),
                                                          QuantizeRules(),
                                                          AmaxHistoryRules()};
  return kRules[static_cast<int>(kind)];
}

bool Computes(const Op& op) {
  return RulesOf(op.kind).model_flops != nullptr || op.kind == OpKind::kEmbeddingGrad;
}

int64_t BytesMoved(const Op& op, const Program& program) {
  if (op.kind == OpKind::kCopy || op.kind == OpKind::kWait) return 0;
  int64_t bytes = 0;
  for (const ValueId id : op.inputs) bytes += program.value(id).bytes();
  for (const ValueId id : op.outputs) bytes += program.value(id).bytes();
  if (op.kind == OpKind::kAdamW) {
    for (const ParameterEntry& entry : program.parameters) {
      // Reads and writes the master and both moments; writes the copy.
      bytes += 6 * program.value(entry.value).bytes();
      if (entry.compute_copy != entry.value) bytes += program.value(entry.compute_copy).bytes();
    }
  }
  return bytes;
}

}  // namespace troupe::model
