// The auxiliary and z losses of each sample row (formulas: model/ops/experts/router_loss.cc), one
// warp per row. A fixed number of blocks iterates over the rows, each with its own sums in float64,
// which a second kernel adds up in order.
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/kernels/experts/router_scores.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

constexpr unsigned kThreads = kRouterWarps * kWarp;
constexpr int64_t kLossBlocks = 264;
constexpr int kFinishThreads = 256;

// The load of the sample that contains `row` of this rank.
TROUPE_DEVICE const float* LoadOf(const float* load, const model::RouterAttributes& router,
                                  int64_t row) {
  return load + (router.first_row + row) / router.local_tokens * (router.experts + 1);
}

// coef · E / (k·T²)
TROUPE_DEVICE double AuxScale(const model::RouterAttributes& router) {
  const auto tokens = static_cast<double>(router.tokens);
  return router.aux_loss_coef * static_cast<double>(router.experts) /
         (static_cast<double>(router.top_k) * tokens * tokens);
}

struct PartialLossArgs {
  RouterLossArgs args;
  double* partial;  // d[blocks, 2]
  int64_t blocks;
};

TROUPE_KERNEL void RouterLossKernel(PartialLossArgs of_blocks) {
  TROUPE_SHARED double shared[kRouterWarps][2];
  const RouterLossArgs& args = of_blocks.args;
  const int64_t experts = args.router.experts;
  const double aux_scale = AuxScale(args.router);
  const double z_scale = args.router.z_loss_coef / static_cast<double>(args.router.tokens);
  double aux = 0, z = 0;
  for (int64_t row = int64_t{BlockIndex().x} * kRouterWarps + Warp(); row < args.rows;
       row += of_blocks.blocks * kRouterWarps) {
    const float* load = LoadOf(args.whole_load, args.router, row);
    const RouterScores scores(args.logits + row * experts, args.router);
    const float sum = scores.Sum(experts);
    double of_row = 0;
    for (int64_t e = Lane(); e < experts; e += kWarp) {
      of_row += static_cast<double>(scores.Of(e) / sum) * load[e];
    }
    const double log_sum = scores.LogSum();
    aux += load[experts] * aux_scale * WarpSum(of_row);
    z += load[experts] * z_scale * log_sum * log_sum;
  }
  if (Lane() == 0) {
    shared[Warp()][0] = aux;
    shared[Warp()][1] = z;
  }
  SyncBlock();
  if (ThreadIndex() >= 2) return;
  double sum = 0;
  for (const auto& of_warp : shared) sum += of_warp[ThreadIndex()];
  of_blocks.partial[int64_t{BlockIndex().x} * 2 + ThreadIndex()] = sum;
}

TROUPE_KERNEL void RouterLossFinishKernel(PartialLossArgs of_blocks) {
  TROUPE_SHARED double shared[model::kRouterLanes][kFinishThreads];
  const RouterLossArgs& args = of_blocks.args;
  const int64_t experts = args.router.experts;
  const int own = static_cast<int>(ThreadIndex());
  double dropped = 0;  // sums of whole numbers: exact in any order
  for (int64_t e = own; e < experts; e += kFinishThreads) {
    double routed = 0;
    for (int64_t b = 0; b < args.samples; ++b) routed += args.own_load[b * (experts + 1) + e];
    double& total = args.totals[model::kRouterLanes + e];
    total = (args.accumulate ? total : 0.0) + routed;
    dropped += routed - args.counts[e];
  }
  double losses[2] = {};
  for (int64_t b = own; b < of_blocks.blocks; b += kFinishThreads) {
    for (int i = 0; i < 2; ++i) losses[i] += of_blocks.partial[b * 2 + i];
  }
  for (int i = 0; i < 2; ++i) shared[i][own] = losses[i];
  shared[model::kRouterDropped][own] = dropped;
  for (int half = kFinishThreads / 2; half > 0; half /= 2) {
    SyncBlock();
    if (own >= half) continue;
    for (auto& sums : shared) sums[own] += sums[own + half];
  }
  SyncBlock();
  if (own >= model::kRouterLanes) return;
  args.totals[own] = (args.accumulate ? args.totals[own] : 0.0) + shared[own][0];
}

TROUPE_KERNEL void RouterLossGradKernel(RouterLossGradArgs args) {
  const int64_t experts = args.router.experts;
  const int64_t row = int64_t{BlockIndex().x} * kRouterWarps + Warp();
  if (row >= args.rows) return;
  const float* routed = LoadOf(args.whole_load, args.router, row);
  const double weight = routed[experts];
  const auto aux = static_cast<float>(weight * AuxScale(args.router));
  const auto z_scale = static_cast<float>(weight * args.router.z_loss_coef * 2 /
                                          static_cast<double>(args.router.tokens));
  const float* logits = args.logits + row * experts;
  float* dlogits = args.dlogits + row * experts;
  const RouterScores scores(logits, args.router);
  const float log_sum = scores.LogSum(), sum = scores.Sum(experts);
  float mean = 0;
  for (int64_t e = Lane(); e < experts; e += kWarp) mean += scores.Of(e) / sum * routed[e];
  mean = WarpSum(mean);
  for (int64_t e = Lane(); e < experts; e += kWarp) {
    // For softmax the scores are p; for sigmoid s = p·sum and ds/dl = s·(1-s).
    const float score = scores.Of(e), p = score / sum;
    const float slope = scores.softmax() ? p : p * (1.0f - score);
    dlogits[e] = aux * slope * (routed[e] - mean) + z_scale * log_sum * expf(logits[e] - log_sum);
  }
}

int64_t LossBlocks(int64_t rows) {
  return std::min(kLossBlocks, (rows + kRouterWarps - 1) / kRouterWarps);
}

}  // namespace

int64_t RouterLossScratchBytes(int64_t rows) {
  return LossBlocks(rows) * 2 * static_cast<int64_t>(sizeof(double));
}

std::array<KernelLaunch, 2> RouterLoss(const RouterLossArgs& args, void* scratch) {
  const PartialLossArgs of_blocks{args, static_cast<double*>(scratch), LossBlocks(args.rows)};
  return {MakeLaunch("router_loss", &RouterLossKernel,
                     {.blocks_x = static_cast<unsigned>(of_blocks.blocks), .threads = kThreads},
                     of_blocks),
          MakeLaunch("router_loss_finish", &RouterLossFinishKernel, {.threads = kFinishThreads},
                     of_blocks)};
}

KernelLaunch RouterLossGrad(const RouterLossGradArgs& args) {
  return MakeLaunch("router_loss_grad", &RouterLossGradKernel,
                    ThreadsFor(args.rows * kWarp, kThreads), args);
}

}  // namespace troupe::kernels::cuda
