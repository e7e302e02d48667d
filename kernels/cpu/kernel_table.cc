// The kernel table of one level.
#include "kernels/cpu/level_target.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

template <typename T>
void Embedding(const EmbeddingArgs&, int, int);
template <typename T>
void EmbeddingGrad(const EmbeddingGradArgs&, int, int);
template <typename T>
void RmsNorm(const RmsNormArgs&, int, int);
template <typename T>
void RmsNormGrad(const RmsNormGradArgs&, int, int);
void RmsNormGradFinish(const RmsNormGradArgs&, int, int);
template <typename T>
void Add(const AddArgs&, int, int);
void Cast(const CastArgs&, int, int);
void Widen(const WidenArgs&, int, int);
void Narrow(const NarrowArgs&, int, int);
template <typename T>
void Dropout(const DropoutArgs&, int, int);
template <typename T>
void Rope(const RopeArgs&, int, int);
void SplitHeads(const SplitHeadsArgs&, int, int);
template <typename T>
void Attention(const AttentionArgs&, int, int);
template <typename T>
void AttentionGrad(const AttentionGradArgs&, int, int);
int64_t AttentionScratchBytes(const AttentionShape&);
template <typename T>
void SwiGlu(const SwiGluArgs&, int, int);
template <typename T>
void SwiGluGrad(const SwiGluGradArgs&, int, int);
template <typename T>
void RouterLogits(const RouterLogitsArgs&, int, int);
template <typename T>
void RouterLogitsGradInput(const RouterLogitsGradInputArgs&, int, int);
template <typename T>
void RouterLogitsGradWeight(const RouterLogitsGradWeightArgs&, int, int);
template <typename T>
void Permute(const PermuteArgs&, int, int);
template <typename T>
void Combine(const CombineArgs&, int, int);
template <typename T>
void CombineGrad(const CombineGradArgs&, int, int);
template <typename T>
void SoftmaxStats(const SoftmaxStatsArgs&, int, int);
template <typename T>
void SoftmaxStatsGrad(const SoftmaxStatsGradArgs&, int, int);
template <typename T>
void SoftmaxStatsAndGrad(const SoftmaxStatsAndGradArgs&, int, int);
void SoftmaxRescale(const SoftmaxRescaleArgs&, int, int);
void CrossEntropy(const CrossEntropyArgs&, int, int);
void CrossEntropyGrad(const CrossEntropyGradArgs&, int, int);
void Accumulate(const AccumulateArgs&, int, int);
void SumOfSquares(const SumOfSquaresArgs&, int, int);
void AdamW(const AdamWArgs&, int, int);

const KernelTable& Kernels() {
  static constexpr KernelTable kTable = {
      .embedding = {&Embedding<float>, &Embedding<BFloat16>},
      .embedding_grad = {&EmbeddingGrad<float>, &EmbeddingGrad<BFloat16>},
      .rms_norm = {&RmsNorm<float>, &RmsNorm<BFloat16>},
      .rms_norm_grad = {&RmsNormGrad<float>, &RmsNormGrad<BFloat16>},
      .rms_norm_grad_finish = &RmsNormGradFinish,
      .add = {&Add<float>, &Add<BFloat16>},
      .accumulate = &Accumulate,
      .cast = &Cast,
      .rope = {&Rope<float>, &Rope<BFloat16>},
      .dropout = {&Dropout<float>, &Dropout<BFloat16>},
      .split_heads = &SplitHeads,
      .attention = {&Attention<float>, &Attention<BFloat16>},
      .attention_grad = {&AttentionGrad<float>, &AttentionGrad<BFloat16>},
      .attention_scratch_bytes = &AttentionScratchBytes,
      .swiglu = {&SwiGlu<float>, &SwiGlu<BFloat16>},
      .swiglu_grad = {&SwiGluGrad<float>, &SwiGluGrad<BFloat16>},
      .router_logits = {&RouterLogits<float>, &RouterLogits<BFloat16>},
      .router_logits_grad_input = {&RouterLogitsGradInput<float>, &RouterLogitsGradInput<BFloat16>},
      .router_logits_grad_weight = {&RouterLogitsGradWeight<float>, &RouterLogitsGradWeight<BFloat16>},
      .permute = {&Permute<float>, &Permute<BFloat16>},
      .combine = {&Combine<float>, &Combine<BFloat16>},
      .combine_grad = {&CombineGrad<float>, &CombineGrad<BFloat16>},
      .softmax_stats = {&SoftmaxStats<float>, &SoftmaxStats<BFloat16>},
      .softmax_stats_grad = {&SoftmaxStatsGrad<float>, &SoftmaxStatsGrad<BFloat16>},
      .softmax_stats_and_grad = {&SoftmaxStatsAndGrad<float>, &SoftmaxStatsAndGrad<BFloat16>},
      .softmax_rescale = &SoftmaxRescale,
      .cross_entropy = &CrossEntropy,
      .cross_entropy_grad = &CrossEntropyGrad,
      .sum_of_squares = &SumOfSquares,
      .adamw = &AdamW,
      .widen = &Widen,
      .narrow = &Narrow,
  };
  return kTable;
}

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE
