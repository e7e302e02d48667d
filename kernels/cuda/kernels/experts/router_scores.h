// The scores of a token's logits, computed by a warp.
#ifndef TROUPE_KERNELS_CUDA_KERNELS_EXPERTS_ROUTER_SCORES_H_
#define TROUPE_KERNELS_CUDA_KERNELS_EXPERTS_ROUTER_SCORES_H_

#include <cmath>
#include <cstdint>

#include "kernels/cuda/device_code/numbers.h"
#include "model/program/router_attributes.h"

namespace troupe::kernels::cuda {

// Warps per block; each handles one token.
inline constexpr int kRouterWarps = 8;

class RouterScores {
 public:
  // All lanes of a warp must call it together. logits: f[E].
  TROUPE_DEVICE RouterScores(const float* logits, const model::RouterAttributes& router)
      : logits_(logits), softmax_(router.score == model::RouterScore::kSoftmax) {
    float largest = -INFINITY;
    for (int64_t e = Lane(); e < router.experts; e += kWarp) largest = fmaxf(largest, logits[e]);
    largest_ = WarpMax(largest);
    float sum = 0;
    for (int64_t e = Lane(); e < router.experts; e += kWarp) sum += expf(logits[e] - largest_);
    sum_ = WarpSum(sum);
  }

  TROUPE_DEVICE float Of(int64_t expert) const {
    return softmax_ ? expf(logits_[expert] - largest_) / sum_
                    : 1.0f / (1.0f + expf(-logits_[expert]));
  }
  // The sum of all scores. All lanes of the warp must call it together.
  TROUPE_DEVICE float Sum(int64_t experts) const {
    float sum = 0;
    for (int64_t e = Lane(); e < experts; e += kWarp) sum += Of(e);
    return WarpSum(sum);
  }
  // log Σ exp(logits).
  TROUPE_DEVICE float LogSum() const { return largest_ + logf(sum_); }
  TROUPE_DEVICE bool softmax() const { return softmax_; }

 private:
  const float* const logits_;
  const bool softmax_;
  float largest_, sum_;
};

}  // namespace troupe::kernels::cuda

#endif  // TROUPE_KERNELS_CUDA_KERNELS_EXPERTS_ROUTER_SCORES_H_
