// The router's matmul and its gradients, in float32. The summation order of a logit does not depend
// on the number of rows. The weight gradient is small and its sums are long: each block handles a
// part of the rows, and a second kernel adds up the parts in order.
#include "kernels/cuda/device_code/fma_matmul.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int64_t kFewExperts = 16;    // at most this many use narrow tiles
constexpr int64_t kGradBlocks = 264;   // target number of blocks of the weight gradient,
constexpr int64_t kGradRowsMin = 256;  // with at least this many rows each

int64_t PartsOf(const RouterLogitsGradWeightArgs& args) {
  const int64_t tiles = (args.hidden + 63) / 64 * ((args.experts + 63) / 64);
  return std::clamp<int64_t>(args.rows / kGradRowsMin, 1, (kGradBlocks + tiles - 1) / tiles);
}

struct FinishArgs {
  const float* partial;  // f[parts, count]
  float* sum;            // f[count]
  int64_t count, parts;
  bool accumulate;
};

TROUPE_KERNEL void RouterLogitsGradWeightFinishKernel(FinishArgs args) {
  const int64_t i = int64_t{BlockIndex().x} * BlockThreads() + ThreadIndex();
  if (i >= args.count) return;
  float sum = args.accumulate ? args.sum[i] : 0.0f;
  for (int64_t part = 0; part < args.parts; ++part) sum += args.partial[part * args.count + i];
  args.sum[i] = sum;
}

template <typename T>
KernelLaunch RouterLogitsOf(const RouterLogitsArgs& args) {
  constexpr auto kKind = MatmulKind::kForward;
  const MatmulArgs matmul{kKind,        args.x,  args.w, args.logits, args.rows, args.hidden,
                          args.experts, nullptr, 1,      1,           false};
  return args.experts <= kFewExperts
             ? FmaMatmulOf<T, float, float, kKind, false, 256, 16>("router_logits", matmul)
             : FmaMatmulOf<T, float, float, kKind, false, 64, 64>("router_logits", matmul);
}

template <typename T>
KernelLaunch RouterLogitsGradInputOf(const RouterLogitsGradInputArgs& args) {
  constexpr auto kKind = MatmulKind::kInputGradient;
  return FmaMatmulOf<float, float, T, kKind, false, 64, 64>(
      "router_logits_grad_input", {kKind, args.dlogits, args.w, args.dx, args.rows, args.hidden,
                                   args.experts, nullptr, 1, 1, false});
}

// Treats every part of the rows as the rows of one expert.
template <typename T>
KernelLaunch RouterLogitsGradWeightOf(const RouterLogitsGradWeightArgs& args, void* partial) {
  constexpr auto kKind = MatmulKind::kWeightGradient;
  const MatmulArgs matmul{kKind,        args.dlogits, args.x, partial,       args.rows, args.hidden,
                          args.experts, nullptr,      1,      PartsOf(args), false};
  return args.experts <= kFewExperts ? FmaMatmulOf<float, T, float, kKind, false, 16, 256>(
                                           "router_logits_grad_weight", matmul)
                                     : FmaMatmulOf<float, T, float, kKind, false, 64, 64>(
                                           "router_logits_grad_weight", matmul);
}

}  // namespace

KernelLaunch RouterLogits(const RouterLogitsArgs& args, bool bfloat16) {
  return bfloat16 ? RouterLogitsOf<BFloat16>(args) : RouterLogitsOf<float>(args);
}

KernelLaunch RouterLogitsGradInput(const RouterLogitsGradInputArgs& args, bool bfloat16) {
  return bfloat16 ? RouterLogitsGradInputOf<BFloat16>(args) : RouterLogitsGradInputOf<float>(args);
}

int64_t RouterLogitsGradWeightScratchBytes(const RouterLogitsGradWeightArgs& args) {
  return PartsOf(args) * args.experts * args.hidden * static_cast<int64_t>(sizeof(float));
}

std::array<KernelLaunch, 2> RouterLogitsGradWeight(const RouterLogitsGradWeightArgs& args,
                                                   void* scratch, bool bfloat16) {
  const FinishArgs finish{static_cast<float*>(scratch), args.dw, args.experts * args.hidden,
                          PartsOf(args), args.accumulate};
  return {bfloat16 ? RouterLogitsGradWeightOf<BFloat16>(args, scratch)
                   : RouterLogitsGradWeightOf<float>(args, scratch),
          MakeLaunch("router_logits_grad_weight_finish", &RouterLogitsGradWeightFinishKernel,
                     ThreadsFor(finish.count), finish)};
}

}  // namespace troupe::kernels::cuda
