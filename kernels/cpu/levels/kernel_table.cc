// The kernel table of one level.
#include "kernels/cpu/level_target.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

#define TROUPE_CPU_TYPED(Kind, name) \
  template <typename T>              \
  void Kind(const Kind##Args&, int, int);
#define TROUPE_CPU_PLAIN(Kind, name) void Kind(const Kind##Args&, int, int);
#include "model/program/op_kinds.def"

template <typename T>
void RmsNormGrad(const RmsNormGradArgs&, int, int);
void RmsNormGradFinish(const RmsNormGradArgs&, int, int);
void Cast(const CastArgs&, int, int);
void Widen(const WidenArgs&, int, int);
void Narrow(const NarrowArgs&, int, int);
template <typename T>
void Rope(const RopeArgs&, int, int);
template <typename T>
void Attention(const AttentionArgs&, int, int);
template <typename T>
void AttentionGrad(const AttentionGradArgs&, int, int);
int64_t AttentionScratchBytes(const AttentionShape&);
void SumOfSquares(const SumOfSquaresArgs&, int, int);
void AdamW(const AdamWArgs&, const UpdateArgs&, int, int);
void Sgd(const SgdArgs&, const UpdateArgs&, int, int);

const KernelTable& Kernels() {
  static constexpr KernelTable kTable = {
#define TROUPE_CPU_TYPED(Kind, name) .name = {&Kind<float>, &Kind<BFloat16>},
#define TROUPE_CPU_PLAIN(Kind, name) .name = &Kind,
#include "model/program/op_kinds.def"
      .rms_norm_grad = {&RmsNormGrad<float>, &RmsNormGrad<BFloat16>},
      .rms_norm_grad_finish = &RmsNormGradFinish,
      .cast = &Cast,
      .rope = {&Rope<float>, &Rope<BFloat16>},
      .attention = {&Attention<float>, &Attention<BFloat16>},
      .attention_grad = {&AttentionGrad<float>, &AttentionGrad<BFloat16>},
      .sum_of_squares = &SumOfSquares,
      .adamw = &AdamW,
      .sgd = &Sgd,
      .widen = &Widen,
      .narrow = &Narrow,
      .attention_scratch_bytes = &AttentionScratchBytes,
  };
  return kTable;
}

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#include "kernels/cpu/level_end.h"
