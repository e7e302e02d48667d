#include "kernels/cuda/libraries/matmul_timing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cuda/libraries/matmul_layout.h"
#include "kernels/cuda/runtime/noise.h"

namespace troupe::kernels::cuda {
namespace {

// The duration of consecutive launches, long enough to be device-bound.
constexpr double kRoundSeconds = 2e-3;
constexpr int kRounds = 3;
// Algorithms slower than the best by this factor in their first round are not timed again.
constexpr double kHopeless = 1.25;

}  // namespace

StatusOr<std::unique_ptr<MatmulTiming>> MatmulTiming::Make(CudaDevice& device,
                                                           const LtMatmul& matmul,
                                                           int64_t workspace_bytes) {
  std::unique_ptr<MatmulTiming> timing(new MatmulTiming(device, matmul));
  const MatmulShape& shape = matmul.shape();
  const MatmulExtents extents = ExtentsOf(shape);
  const bool float8 = shape.float8 != Float8Scaling::kNone;
  const int64_t element = float8 ? 1 : shape.bfloat16 ? 2 : 4;
  const int64_t a_bytes = extents.a * element, b_bytes = extents.b * element;
  TROUPE_ASSIGN_OR_RETURN(timing->a_, device.Allocate(a_bytes));
  TROUPE_ASSIGN_OR_RETURN(timing->b_, device.Allocate(b_bytes));
  TROUPE_ASSIGN_OR_RETURN(timing->c_, device.Allocate(extents.c * (HasFloatResult(shape) ? 4 : 2)));
  TROUPE_ASSIGN_OR_RETURN(timing->workspace_, device.Allocate(workspace_bytes));
  TROUPE_RETURN_IF_ERROR(FillWithNoise(device, timing->a_.get(), a_bytes, shape.bfloat16));
  TROUPE_RETURN_IF_ERROR(FillWithNoise(device, timing->b_.get(), b_bytes, shape.bfloat16));
  // Bytes of noise are FP8 numbers of typical magnitudes and some NaNs, which are not slower.
  if (float8) {
    // Large enough for the scales of any operand, also of blocks.
    const MatmulLayout layout = LayoutOf(shape);
    const int64_t bytes =
        std::max(layout.m, layout.n) * (layout.k / 128 + 4) * static_cast<int64_t>(sizeof(float));
    TROUPE_ASSIGN_OR_RETURN(timing->scale_, device.Allocate(bytes));
    TROUPE_RETURN_IF_ERROR(FillWithNoise(device, timing->scale_.get(), bytes, false));
  }
  TROUPE_ASSIGN_OR_RETURN(timing->timer_, DeviceTimer::Make(device));
  return timing;
}

StatusOr<double> MatmulTiming::Seconds(const LtAlgorithm& algorithm, int launches) {
  CUstream_st* const stream = device_.native_stream(Stream::kCompute);
  const auto* const scale = reinterpret_cast<const float*>(scale_.get());
  TROUPE_ASSIGN_OR_RETURN(const double seconds, timer_->Seconds([&] {
    Status status = OkStatus();
    for (int i = 0; i < launches && status.ok(); ++i) {
      status = matmul_.Enqueue(algorithm, a_.get(), b_.get(), c_.get(), false, workspace_.get(),
                               stream, {scale, scale});
    }
    return status;
  }));
  return seconds / launches;
}

StatusOr<size_t> MatmulTiming::Fastest(const std::vector<LtAlgorithm>& algorithms) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<double> seconds(algorithms.size(), kNever);
  std::vector<int> launches(algorithms.size(), 1);
  double best = kNever;
  Status refused = Internal("there is no algorithm for {}", ShapeText(matmul_.shape()));
  for (size_t i = 0; i < algorithms.size(); ++i) {
    // The first launch loads the kernel onto the device. An algorithm that the library proposes and
    // then fails to run is left out.
    const StatusOr<double> first = Seconds(algorithms[i], 1);
    const StatusOr<double> warm = first.ok() ? Seconds(algorithms[i], 1) : first;
    if (!warm.ok()) {
      refused = warm.status();
      continue;
    }
    launches[i] = static_cast<int>(std::clamp(std::ceil(kRoundSeconds / *warm), 2.0, 100.0));
    TROUPE_ASSIGN_OR_RETURN(seconds[i], Seconds(algorithms[i], launches[i]));
    best = std::min(best, seconds[i]);
  }
  if (best == kNever) return refused;
  const double bound = kHopeless * best;
  for (int round = 1; round < kRounds; ++round) {
    for (size_t i = 0; i < algorithms.size(); ++i) {
      if (seconds[i] > bound) continue;
      TROUPE_ASSIGN_OR_RETURN(const double again, Seconds(algorithms[i], launches[i]));
      seconds[i] = std::min(seconds[i], again);
    }
  }
  return static_cast<size_t>(std::ranges::min_element(seconds) - seconds.begin());
}

}  // namespace troupe::kernels::cuda
