// Counts how often the rows of each sample chose each expert, and sums their weights: each block
// handles a part of a sample's rows; a second kernel adds up the parts in order.
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kPart = 1024;  // rows per block

int64_t PartsOf(const RouterLoadArgs& args) {
  return (args.router.local_tokens + kPart - 1) / kPart;
}

// partial[sample, part] has the layout of a row of the load. Counts are whole numbers, which are
// exact in float32 up to 2^24.
struct PartialLoadArgs {
  RouterLoadArgs args;
  float* partial;  // f[B, parts, E+1]
  int64_t parts;
};

TROUPE_KERNEL void RouterLoadKernel(PartialLoadArgs of_parts) {
  TROUPE_SHARED int32_t counts[model::kMaxExperts];
  TROUPE_SHARED float shared[kWarp + 1];
  const RouterLoadArgs& args = of_parts.args;
  const int64_t experts = args.router.experts, k = args.router.top_k;
  const int64_t part = BlockIndex().x, sample = BlockIndex().y;
  for (int64_t e = ThreadIndex(); e < experts; e += kThreads) counts[e] = 0;
  SyncBlock();
  // Row indices are global over the tensor ranks; only this rank's rows are counted.
  const int64_t of_sample = sample * args.router.local_tokens, first_row = args.router.first_row;
  const auto clamped = [&](int64_t row) {
    const int64_t below =
        row < of_sample + args.router.local_tokens ? row : of_sample + args.router.local_tokens;
    const int64_t own = below - first_row;
    return own < 0 ? 0 : own < args.rows ? own : args.rows;
  };
  const int64_t begin = clamped(of_sample + part * kPart);
  const int64_t end = clamped(of_sample + (part + 1) * kPart);
  for (int64_t i = begin * k + ThreadIndex(); i < end * k; i += kThreads) {
    AtomicAdd(counts + args.expert_ids[i], 1);
  }
  float weight = 0;
  for (int64_t r = begin + ThreadIndex(); r < end; r += kThreads) {
    weight += args.weights[first_row + r];
  }
  weight = BlockSum(weight, shared);  // its barriers also complete the counts
  float* const load = of_parts.partial + (sample * of_parts.parts + part) * (experts + 1);
  for (int64_t e = ThreadIndex(); e < experts; e += kThreads)
    load[e] = static_cast<float>(counts[e]);
  if (ThreadIndex() == 0) load[experts] = weight;
}

TROUPE_KERNEL void RouterLoadFinishKernel(PartialLoadArgs of_parts) {
  const int64_t lanes = of_parts.args.router.experts + 1;
  const int64_t i = int64_t{BlockIndex().x} * kThreads + ThreadIndex();
  if (i >= of_parts.args.samples * lanes) return;
  const float* partial = of_parts.partial + i / lanes * of_parts.parts * lanes + i % lanes;
  float sum = 0;
  for (int64_t part = 0; part < of_parts.parts; ++part) sum += partial[part * lanes];
  of_parts.args.load[i] = sum;
}

}  // namespace

int64_t RouterLoadScratchBytes(const RouterLoadArgs& args) {
  return args.samples * PartsOf(args) * (args.router.experts + 1) *
         static_cast<int64_t>(sizeof(float));
}

std::array<KernelLaunch, 2> RouterLoad(const RouterLoadArgs& args, void* scratch) {
  const PartialLoadArgs of_parts{args, static_cast<float*>(scratch), PartsOf(args)};
  return {MakeLaunch("router_load", &RouterLoadKernel,
                     {.blocks_x = static_cast<unsigned>(of_parts.parts),
                      .blocks_y = static_cast<unsigned>(args.samples),
                      .threads = kThreads},
                     of_parts),
          MakeLaunch("router_load_finish", &RouterLoadFinishKernel,
                     ThreadsFor(args.samples * (args.router.experts + 1), kThreads), of_parts)};
}

}  // namespace troupe::kernels::cuda
