// The rules of each kind; each is defined in the file with its name (see rules.h).
#ifndef TROUPE_MODEL_OPS_KINDS_H_
#define TROUPE_MODEL_OPS_KINDS_H_

#include "model/ops/rules.h"

namespace troupe::model {

OpRules EmbeddingRules();
OpRules EmbeddingGradRules();
OpRules RmsNormRules();
OpRules AddRmsNormRules();
OpRules RmsNormGradRules();
OpRules AddRules();
OpRules MatmulRules();
OpRules MatmulGradInputRules();
OpRules MatmulGradWeightRules();
OpRules RopeRules();
OpRules AttentionRules();
OpRules AttentionGradRules();
OpRules SplitHeadsRules();
OpRules JoinHeadsRules();
OpRules ShiftRules();
OpRules AttentionPartRules();
OpRules AttentionPartGradRules();
OpRules SwiGluRules();
OpRules SwiGluGradRules();
OpRules SoftmaxStatsRules();
OpRules SoftmaxRescaleRules();
OpRules CrossEntropyRules();
OpRules CrossEntropyGradRules();
OpRules SoftmaxRescaleGradRules();
OpRules SoftmaxStatsGradRules();
OpRules SoftmaxStatsAndGradRules();
OpRules CopyRules();
OpRules AllReduceRules();
OpRules ReduceScatterRules();
OpRules AllGatherRules();
OpRules ExchangeHeadsRules();
OpRules WaitRules();
OpRules AccumulateRules();
OpRules CastRules();
OpRules ControlTotalsRules();
OpRules ControlRoutedRules();
OpRules SumOfSquaresRules();
OpRules ControlReduceRules();
OpRules ControlHaltRules();
OpRules AdamWRules();
OpRules RouterLogitsRules();
OpRules RouterLogitsGradInputRules();
OpRules RouterLogitsGradWeightRules();
OpRules RouterTopKRules();
OpRules RouterTopKGradRules();
OpRules RouterLossRules();
OpRules RouterLossGradRules();
OpRules PermuteRules();
OpRules PermuteGradRules();
OpRules AllToAllRules();
OpRules GroupedMatmulRules();
OpRules GroupedMatmulGradInputRules();
OpRules GroupedMatmulGradWeightRules();
OpRules CombineRules();
OpRules CombineGradRules();
OpRules RouterBiasRules();
OpRules RouterLoadRules();
OpRules GatherRoutedRules();
OpRules ScatterRoutedRules();
OpRules RouterSlotsRules();
OpRules DropoutRules();
OpRules RelayoutRules();
OpRules QuantizeRules();
OpRules AmaxHistoryRules();

}  // namespace troupe::model

#endif  // TROUPE_MODEL_OPS_KINDS_H_
