#include "kernels/cuda/libraries/attention_timing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <span>

#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/runtime/device_timer.h"
#include "kernels/cuda/runtime/noise.h"

namespace troupe::kernels::cuda {
namespace {

// The duration of consecutively enqueued work, long enough to be device-bound.
constexpr double kAttentionRoundSeconds = 5e-3;
constexpr int kAttentionRounds = 3;

// The operands of attention, in the layout of a program. q, k, v and the output gradient are
// random; o and lse come from our own kernel.
struct Operands {
  DeviceMemory qkv, o, lse, lse_by_heads, output_gradient, qkv_gradient, scratch, workspace;
  AttentionArgs forward{};
  AttentionGradArgs gradient{};
};

AttentionRows RowsOf(const LibraryAttentionShape& shape) {
  const model::ContextRows all = model::ContextRows::Of(shape.tokens, 1, 0);
  return {
      shape.samples, shape.tokens, shape.query_heads, shape.key_value_heads, shape.head_dim, all,
      all,           nullptr};
}

StatusOr<std::unique_ptr<Operands>> MakeOperands(CudaDevice& device,
                                                 const LibraryAttentionShape& shape,
                                                 int64_t workspace_bytes) {
  auto made = std::make_unique<Operands>();
  const int64_t element = shape.bfloat16 ? 2 : 4;
  const int64_t qkv_bytes = shape.rows() * shape.qkv_width() * element;
  const int64_t o_bytes = shape.rows() * shape.query_heads * shape.head_dim * element;
  const int64_t lse_bytes = shape.rows() * shape.query_heads * 4;
  const AttentionRows rows = RowsOf(shape);
  TROUPE_ASSIGN_OR_RETURN(made->qkv, device.Allocate(qkv_bytes));
  TROUPE_ASSIGN_OR_RETURN(made->o, device.Allocate(o_bytes));
  TROUPE_ASSIGN_OR_RETURN(made->lse, device.Allocate(lse_bytes));
  TROUPE_ASSIGN_OR_RETURN(made->lse_by_heads, device.Allocate(lse_bytes));
  TROUPE_ASSIGN_OR_RETURN(made->output_gradient, device.Allocate(o_bytes));
  TROUPE_ASSIGN_OR_RETURN(made->qkv_gradient, device.Allocate(qkv_bytes));
  TROUPE_ASSIGN_OR_RETURN(made->scratch, device.Allocate(AttentionGradScratchBytes(rows)));
  TROUPE_ASSIGN_OR_RETURN(made->workspace, device.Allocate(workspace_bytes));
  TROUPE_RETURN_IF_ERROR(FillWithNoise(device, made->qkv.get(), qkv_bytes, shape.bfloat16));
  TROUPE_RETURN_IF_ERROR(
      FillWithNoise(device, made->output_gradient.get(), o_bytes, shape.bfloat16));
  const int64_t k_at = shape.query_heads * shape.head_dim * element;
  const int64_t v_at = k_at + shape.key_value_heads * shape.head_dim * element;
  char* const qkv = made->qkv.get();
  char* const gradient = made->qkv_gradient.get();
  auto* const lse = reinterpret_cast<float*>(made->lse.get());
  made->forward = {.q = qkv,
                   .k = qkv + k_at,
                   .v = qkv + v_at,
                   .o = made->o.get(),
                   .lse = lse,
                   .q_stride = shape.qkv_width(),
                   .kv_stride = shape.qkv_width(),
                   .rows = rows};
  made->gradient = {.output_gradient = made->output_gradient.get(),
                    .q = qkv,
                    .k = qkv + k_at,
                    .v = qkv + v_at,
                    .o = made->o.get(),
                    .lse = lse,
                    .dq = gradient,
                    .dk = gradient + k_at,
                    .dv = gradient + v_at,
                    .q_stride = shape.qkv_width(),
                    .kv_stride = shape.qkv_width(),
                    .rows = rows};
  TROUPE_RETURN_IF_ERROR(device.Launch(Attention(made->forward, shape.bfloat16), Stream::kCompute));
  return made;
}

// The minimum of several rounds; in each, `enqueue` is called many times in a row.
StatusOr<double> SecondsOf(DeviceTimer& timer, const std::function<Status()>& enqueue) {
  TROUPE_RETURN_IF_ERROR(timer.Seconds(enqueue).status());  // loads the kernels onto the device
  TROUPE_ASSIGN_OR_RETURN(const double once, timer.Seconds(enqueue));
  const int count = static_cast<int>(
      std::clamp(std::ceil(kAttentionRoundSeconds / std::max(once, 1e-6)), 2.0, 100.0));
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kAttentionRounds; ++round) {
    TROUPE_ASSIGN_OR_RETURN(const double seconds, timer.Seconds([&] {
      Status status = OkStatus();
      for (int i = 0; i < count && status.ok(); ++i) status = enqueue();
      return status;
    }));
    least = std::min(least, seconds / count);
  }
  return least;
}

Status LaunchAll(CudaDevice& device, std::span<const KernelLaunch> kernels) {
  for (const KernelLaunch& kernel : kernels)
    TROUPE_RETURN_IF_ERROR(device.Launch(kernel, Stream::kCompute));
  return OkStatus();
}

}  // namespace

StatusOr<AttentionSeconds> DeviceAttentionTiming::Time(const LibraryAttentionShape& shape,
                                                       LibraryAttention& library) {
  TROUPE_ASSIGN_OR_RETURN(const auto operands,
                          MakeOperands(device_, shape, library.workspace_bytes()));
  TROUPE_ASSIGN_OR_RETURN(const auto timer, DeviceTimer::Make(device_));
  AttentionSeconds seconds;
  TROUPE_ASSIGN_OR_RETURN(seconds.library, SecondsOf(*timer, [&] {
                            return library.Enqueue(operands->forward, operands->workspace.get(),
                                                   Stream::kCompute);
                          }));
  TROUPE_ASSIGN_OR_RETURN(seconds.own, SecondsOf(*timer, [&] {
                            return device_.Launch(Attention(operands->forward, shape.bfloat16),
                                                  Stream::kCompute);
                          }));
  return seconds;
}

StatusOr<AttentionSeconds> DeviceAttentionTiming::Time(const LibraryAttentionShape& shape,
                                                       LibraryAttentionGrad& library) {
  TROUPE_ASSIGN_OR_RETURN(const auto operands,
                          MakeOperands(device_, shape, library.workspace_bytes()));
  TROUPE_ASSIGN_OR_RETURN(const auto timer, DeviceTimer::Make(device_));
  auto* const lse_by_heads = reinterpret_cast<float*>(operands->lse_by_heads.get());
  AttentionGradArgs by_heads = operands->gradient;
  by_heads.lse = lse_by_heads;
  AttentionSeconds seconds;
  TROUPE_ASSIGN_OR_RETURN(
      seconds.library, SecondsOf(*timer, [&]() -> Status {
        TROUPE_RETURN_IF_ERROR(device_.Launch(
            LseByHeads(by_heads.rows, operands->gradient.lse, lse_by_heads), Stream::kCompute));
        return library.Enqueue(by_heads, operands->workspace.get(), Stream::kCompute);
      }));
  TROUPE_ASSIGN_OR_RETURN(
      seconds.own, SecondsOf(*timer, [&] {
        void* const scratch = operands->scratch.get();
        return LaunchAll(device_,
                         std::array{AttentionDelta(operands->gradient, scratch, shape.bfloat16),
                                    AttentionQueryGrad(operands->gradient, scratch, shape.bfloat16),
                                    AttentionKeyGrad(operands->gradient, scratch, shape.bfloat16)});
      }));
  return seconds;
}

}  // namespace troupe::kernels::cuda
