// The router's product and its gradients, in float32. Each logit is summed in an order that does not depend on the number of
// rows. The gradient of the weights is small and its sums are long: blocks have parts of the rows, whose sums a second
// kernel adds up in order.
#include "kernels/cuda/fma_product.h"
#include "kernels/cuda/kernels.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int64_t kFewExperts = 16;      // take tiles as narrow
constexpr int64_t kGradBlocks = 264;     // that the gradient of the weights is to have at least, if
constexpr int64_t kGradRowsMin = 256;    // each has so many rows

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
  constexpr auto kKind = ProductKind::kForward;
  const ProductArgs product{kKind,       args.x,       args.w,  args.logits, args.rows, args.hidden,
                            args.experts, nullptr, 1,       1,           false};
  return args.experts <= kFewExperts
             ? FmaProductOf<T, float, float, kKind, false, 256, 16>("router_logits", product)
             : FmaProductOf<T, float, float, kKind, false, 64, 64>("router_logits", product);
}

template <typename T>
KernelLaunch RouterLogitsGradInputOf(const RouterLogitsGradInputArgs& args) {
  constexpr auto kKind = ProductKind::kInputGradient;
  return FmaProductOf<float, float, T, kKind, false, 64, 64>(
      "router_logits_grad_input", {kKind, args.dlogits, args.w, args.dx, args.rows, args.hidden,
                                   args.experts, nullptr, 1, 1, false});
}

// Every part of the rows as the rows of an expert.
template <typename T>
KernelLaunch RouterLogitsGradWeightOf(const RouterLogitsGradWeightArgs& args, void* partial) {
  constexpr auto kKind = ProductKind::kWeightGradient;
  const ProductArgs product{kKind,       args.dlogits,  args.x, partial, args.rows, args.hidden,
                            args.experts, nullptr, 1,      PartsOf(args), false};
  return args.experts <= kFewExperts
             ? FmaProductOf<float, T, float, kKind, false, 16, 256>("router_logits_grad_weight", product)
             : FmaProductOf<float, T, float, kKind, false, 64, 64>("router_logits_grad_weight", product);
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
