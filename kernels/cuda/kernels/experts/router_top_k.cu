// The k best experts of each token, one warp per token, then the row of each assignment
// (sort_by_expert.h); and the gradient of the weights.
#include <bit>

#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/kernels/experts/router_scores.h"
#include "kernels/cuda/kernels/experts/sort_by_expert.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

constexpr unsigned kThreads = kRouterWarps * kWarp;
static_assert(model::kMaxExperts <= 32 * kWarp, "a lane marks its experts in the bits of a word");

// A rank that is greater for a greater key and, for equal keys, for the lower expert; never 0. A
// NaN is the greatest key, so that it reaches the weights.
TROUPE_DEVICE uint64_t RankOf(float key, int64_t expert) {
  // The sum maps -0 to +0.
  const auto bits = key == key ? std::bit_cast<uint32_t>(key + 0.0f) : 0x7FFFFFFFu;
  const uint32_t ordered = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
  return uint64_t{ordered} << 32 | (0xFFFFFFFFu - static_cast<uint32_t>(expert));
}
TROUPE_DEVICE int32_t ExpertOf(uint64_t rank) {
  return static_cast<int32_t>(0xFFFFFFFFu - static_cast<uint32_t>(rank));
}

TROUPE_KERNEL void RouterTopKKernel(RouterTopKArgs args) {
  const int64_t experts = args.router.experts, k = args.router.top_k;
  const int64_t row = int64_t{BlockIndex().x} * kRouterWarps + Warp();
  if (row >= args.rows) return;
  // Each lane reads only its own scores.
  float* const scores = reinterpret_cast<float*>(DynamicShared()) + Warp() * experts;
  const RouterScores of_row(args.logits + row * experts, args.router);
  for (int64_t e = Lane(); e < experts; e += kWarp) scores[e] = of_row.Of(e);
  float* const weights = args.weights + row * k;
  uint32_t taken = 0;  // bit i: expert Lane() + 32 i
  float sum = 0;
  for (int64_t j = 0; j < k; ++j) {
    uint64_t best = 0;
    uint32_t bit = 1;
    for (int64_t e = Lane(); e < experts; e += kWarp, bit <<= 1) {
      if ((taken & bit) != 0) continue;
      const uint64_t rank = RankOf(args.bias != nullptr ? scores[e] + args.bias[e] : scores[e], e);
      if (rank > best) best = rank;
    }
    for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
      const uint64_t other = ShuffleXor(best, lanes);
      if (other > best) best = other;
    }
    const int32_t expert = ExpertOf(best);
    const float score = of_row.Of(expert);
    sum += score;
    if (Lane() == expert % kWarp) taken |= 1u << (expert / kWarp);
    if (Lane() == 0) {
      args.expert_ids[row * k + j] = expert;
      weights[j] = score;
    }
  }
  if (!args.router.normalise) return;
  SyncWarp();
  for (int64_t j = Lane(); j < k; j += kWarp) weights[j] /= sum;
}

// One warp per token.
TROUPE_KERNEL void RouterTopKGradKernel(RouterTopKGradArgs args) {
  const int64_t experts = args.router.experts, k = args.router.top_k;
  const int64_t row = int64_t{BlockIndex().x} * kRouterWarps + Warp();
  if (row >= args.rows) return;
  const RouterScores scores(args.logits + row * experts, args.router);
  const float* dweights = args.dweights + row * k;
  const int32_t* expert_ids = args.expert_ids + row * k;
  float* dlogits = args.dlogits + row * experts;
  float sum = 1, mean = 0;
  if (args.router.normalise) {
    float of_scores = 0, of_products = 0;
    for (int64_t j = Lane(); j < k; j += kWarp) {
      const float score = scores.Of(expert_ids[j]);
      of_scores += score;
      of_products += dweights[j] * score;
    }
    sum = WarpSum(of_scores);
    mean = WarpSum(of_products) / sum;
  }
  float along = 0;  // Σ score · gradient
  for (int64_t j = Lane(); j < k; j += kWarp) {
    along += scores.Of(expert_ids[j]) * ((dweights[j] - mean) / sum);
  }
  along = WarpSum(along);
  // Writes the gradient as if no expert were chosen, then that of the chosen ones.
  for (int64_t e = Lane(); e < experts; e += kWarp) {
    // A score that is not finite stays so.
    const float score = scores.Of(e);
    dlogits[e] = scores.softmax() ? -score * along : 0.0f * score;
  }
  SyncWarp();
  for (int64_t j = Lane(); j < k; j += kWarp) {
    const float score = scores.Of(expert_ids[j]), gradient = (dweights[j] - mean) / sum;
    dlogits[expert_ids[j]] =
        scores.softmax() ? score * (gradient - along) : gradient * score * (1.0f - score);
  }
}

}  // namespace

int64_t RouterTopKScratchBytes(const RouterTopKArgs& args) {
  return ExpertSortScratchBytes(args.rows * args.router.top_k, args.router.experts);
}

std::array<KernelLaunch, 4> RouterTopK(const RouterTopKArgs& args, void* scratch) {
  LaunchShape shape = ThreadsFor(args.rows * kWarp, kThreads);
  shape.shared_bytes = kRouterWarps * static_cast<size_t>(args.router.experts) * sizeof(float);
  const auto [count, sum, place] = SortByExpert({.expert_ids = args.expert_ids,
                                                 .kept = nullptr,
                                                 .slots = args.slots,
                                                 .counts = args.counts,
                                                 .before = static_cast<int32_t*>(scratch),
                                                 .assignments = args.rows * args.router.top_k,
                                                 .first_expert = 0,
                                                 .experts = args.router.experts,
                                                 .capacity = args.router.capacity});
  return {MakeLaunch("router_top_k", &RouterTopKKernel, shape, args), count, sum, place};
}

KernelLaunch RouterTopKGrad(const RouterTopKGradArgs& args) {
  return MakeLaunch("router_top_k_grad", &RouterTopKGradKernel,
                    ThreadsFor(args.rows * kWarp, kThreads), args);
}

}  // namespace troupe::kernels::cuda
