// Splits rows of qkv into rows of q and of kv, or joins them, by copies of sixteen bytes if rows
// allow it.
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

template <int Bytes>
TROUPE_KERNEL void SplitHeadsKernel(SplitHeadsArgs args) {
  using Piece = Pack<uint8_t, Bytes>;
  const int64_t row = BlockIndex().x, width = args.q_bytes + args.kv_bytes;
  auto* const qkv = static_cast<uint8_t*>(args.qkv) + row * width;
  auto* const q = static_cast<uint8_t*>(args.q) + row * args.q_bytes;
  auto* const kv = static_cast<uint8_t*>(args.kv) + row * args.kv_bytes;
  for (int64_t at = int64_t{ThreadIndex()} * Bytes; at < width;
       at += int64_t{BlockThreads()} * Bytes) {
    uint8_t* const part = at < args.q_bytes ? q + at : kv + at - args.q_bytes;
    if (args.join) {
      Piece::Load(part).Store(qkv + at);
    } else {
      Piece::Load(qkv + at).Store(part);
    }
  }
}

}  // namespace

KernelLaunch SplitHeads(const SplitHeadsArgs& args) {
  const int64_t width = args.q_bytes + args.kv_bytes;
  return Packs(args.q_bytes, 1, {args.qkv, args.q, args.kv}) && Packs(args.kv_bytes, 1, {})
             ? MakeLaunch("split_heads", &SplitHeadsKernel<16>, BlocksFor(args.rows, width / 16),
                          args)
             : MakeLaunch("split_heads", &SplitHeadsKernel<2>, BlocksFor(args.rows, width / 2),
                          args);
}

}  // namespace troupe::kernels::cuda
