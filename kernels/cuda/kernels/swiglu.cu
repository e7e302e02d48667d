// y = silu(gate)·up and its gradient; a row of gu is gate[F] | up[F]. If all rows are computed,
// there is one block per row; otherwise blocks iterate over as many rows as the counts sum to,
// which only the device knows.
#include "kernels/cuda/device_code/counted_rows.h"
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/kernels/kernels.h"
#include "kernels/cuda/kernels/swiglu.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int64_t kCountedBlocksMax = 132 * 8;

template <typename Args>
TROUPE_DEVICE int64_t RowsOf(const Args& args) {
  return args.counts == nullptr ? args.rows : RowsOfCounts(args.counts, 0, args.num_counts);
}

template <typename T, int N>
TROUPE_KERNEL void SwiGluKernel(SwiGluArgs args) {
  const int64_t rows = RowsOf(args), ffn = args.ffn;
  for (int64_t row = BlockIndex().x; row < rows; row += Blocks().x) {
    const T* gate = static_cast<const T*>(args.gu) + row * 2 * ffn;
    T* y = static_cast<T*>(args.y) + row * ffn;
    for (int64_t f = int64_t{ThreadIndex()} * N; f < ffn; f += int64_t{BlockThreads()} * N) {
      const auto g = Pack<T, N>::Load(gate + f);
      const auto up = Pack<T, N>::Load(gate + ffn + f);
      Pack<T, N> out;
      for (int k = 0; k < N; ++k) out.Set(k, GatedOf<T>(g[k], up[k]));
      out.Store(y + f);
    }
  }
}

template <typename T, int N>
TROUPE_KERNEL void SwiGluGradKernel(SwiGluGradArgs args) {
  const int64_t rows = RowsOf(args), ffn = args.ffn;
  for (int64_t row = BlockIndex().x; row < rows; row += Blocks().x) {
    const T* dy = static_cast<const T*>(args.dy) + row * ffn;
    const T* gate = static_cast<const T*>(args.gu) + row * 2 * ffn;
    T* gradient = static_cast<T*>(args.dgu) + row * 2 * ffn;
    for (int64_t f = int64_t{ThreadIndex()} * N; f < ffn; f += int64_t{BlockThreads()} * N) {
      const auto d = Pack<T, N>::Load(dy + f);
      const auto g = Pack<T, N>::Load(gate + f);
      const auto up = Pack<T, N>::Load(gate + ffn + f);
      Pack<T, N> dgate, dup;
      for (int k = 0; k < N; ++k) {
        const GatedGradient made = GatedGradientOf<T>(d[k], g[k], up[k]);
        dgate.Set(k, made.gate);
        dup.Set(k, made.up);
      }
      dgate.Store(gradient + f);
      dup.Store(gradient + ffn + f);
    }
  }
}

template <typename Args>
LaunchShape ShapeOf(const Args& args, int64_t pieces) {
  return BlocksFor(args.counts == nullptr ? args.rows : std::min(args.rows, kCountedBlocksMax),
                   pieces, 256);
}

template <typename T>
KernelLaunch SwiGluOf(const SwiGluArgs& args) {
  constexpr int kMany = kPack<T>;
  return Packs(args.ffn, sizeof(T), {args.gu, args.y})
             ? MakeLaunch("swiglu", &SwiGluKernel<T, kMany>, ShapeOf(args, args.ffn / kMany), args)
             : MakeLaunch("swiglu", &SwiGluKernel<T, 1>, ShapeOf(args, args.ffn), args);
}

template <typename T>
KernelLaunch SwiGluGradOf(const SwiGluGradArgs& args) {
  constexpr int kMany = kPack<T>;
  return Packs(args.ffn, sizeof(T), {args.dy, args.gu, args.dgu})
             ? MakeLaunch("swiglu_grad", &SwiGluGradKernel<T, kMany>,
                          ShapeOf(args, args.ffn / kMany), args)
             : MakeLaunch("swiglu_grad", &SwiGluGradKernel<T, 1>, ShapeOf(args, args.ffn), args);
}

}  // namespace

KernelLaunch SwiGlu(const SwiGluArgs& args, bool bfloat16) {
  return bfloat16 ? SwiGluOf<BFloat16>(args) : SwiGluOf<float>(args);
}

KernelLaunch SwiGluGrad(const SwiGluGradArgs& args, bool bfloat16) {
  return bfloat16 ? SwiGluGradOf<BFloat16>(args) : SwiGluGradOf<float>(args);
}

}  // namespace troupe::kernels::cuda
