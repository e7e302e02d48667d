// Dropout with the draws of kernels/numerics/dropout_draw.h: one thread per counter, whose four
// words belong to four channels 16 apart.
#include "kernels/cuda/device_code/numbers.h"
#include "kernels/cuda/device_code/shapes.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {
namespace {

struct Words {
  uint32_t of[4];
};

// Philox4x32-10 (base/random.h).
TROUPE_DEVICE Words Draw(uint64_t key, Words c) {
  auto key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * c.of[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * c.of[2];
    c = {{static_cast<uint32_t>(product1 >> 32) ^ c.of[1] ^ key0, static_cast<uint32_t>(product1),
          static_cast<uint32_t>(product0 >> 32) ^ c.of[3] ^ key1, static_cast<uint32_t>(product0)}};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return c;
}

template <typename T>
TROUPE_KERNEL void DropoutKernel(DropoutArgs args) {
  const int64_t row = BlockIndex().x, hidden = args.hidden;
  const int64_t whole_row = args.own.At(row);
  const int32_t* sample = args.samples + whole_row / args.held.rows * 2;
  const T* x = static_cast<const T*>(args.x) + row * hidden;
  T* y = static_cast<T*>(args.y) + row * hidden;
  const bool draws = sample[0] != 0;  // false in an evaluation
  const auto position = static_cast<uint32_t>(args.held.Position(whole_row % args.held.rows));
  // Group 16·b + i draws for the channels 64·b + 16·word + i.
  const int64_t groups = (hidden + 63) / 64 * 16;
  for (int64_t group = ThreadIndex(); group < groups; group += BlockThreads()) {
    Words words{};
    if (draws) {
      words =
          Draw(args.key, {{static_cast<uint32_t>(group), position, static_cast<uint32_t>(sample[1]),
                           static_cast<uint32_t>(sample[0])}});
    }
    for (int word = 0; word < 4; ++word) {
      const int64_t channel = group / 16 * 64 + 16 * word + group % 16;
      if (channel >= hidden) continue;
      if (!draws) {
        y[channel] = x[channel];
      } else {
        const bool kept = words.of[word] >= args.threshold;
        y[channel] = Narrow<T>(kept ? Widen(x[channel]) * args.scale : 0.0f);
      }
    }
  }
}

}  // namespace

KernelLaunch Dropout(const DropoutArgs& args, bool bfloat16) {
  const LaunchShape shape = BlocksFor(args.rows, (args.hidden + 3) / 4);
  return bfloat16 ? MakeLaunch("dropout", &DropoutKernel<BFloat16>, shape, args)
                  : MakeLaunch("dropout", &DropoutKernel<float>, shape, args);
}

}  // namespace troupe::kernels::cuda
