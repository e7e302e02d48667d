// Element-wise sums and conversions.
#include "kernels/cpu/level_target.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

template <typename T>
void Add(const AddArgs& args, int thread, int threads) {
  const Part part = PartOf(args.count, thread, threads, 64);
  const T* a = static_cast<const T*>(args.a);
  const T* b = static_cast<const T*>(args.b);
  T* y = static_cast<T*>(args.y);
  for (int64_t i = part.begin; i < part.end; i += kLanes) {
    const int64_t count = part.end - i;
    StoreUpTo(y + i, count, LoadUpTo(a + i, count) + LoadUpTo(b + i, count));
  }
}

void Accumulate(const AccumulateArgs& args, int thread, int threads) {
  const Part part = PartOf(args.count, thread, threads, 64);
  for (int64_t i = part.begin; i < part.end; i += kLanes) {
    const int64_t count = part.end - i;
    const F32 x = LoadUpTo(args.x + i, count);
    StoreUpTo(args.y + i, count, args.accumulate ? LoadUpTo(args.y + i, count) + x : x);
  }
}

void Cast(const CastArgs& args, int thread, int threads) {
  const Part part = PartOf(args.count, thread, threads, 64);
  BFloat16* y = static_cast<BFloat16*>(args.y);
  for (int64_t i = part.begin; i < part.end; i += kLanes) {
    const int64_t count = part.end - i;
    StoreUpTo(y + i, count, LoadUpTo(args.x + i, count));
  }
}

void Widen(const WidenArgs& args, int thread, int threads) {
  const Part part = PartOf(args.count, thread, threads, 64);
  const BFloat16* x = static_cast<const BFloat16*>(args.x);
  for (int64_t i = part.begin; i < part.end; i += kLanes) {
    const int64_t count = part.end - i;
    StoreUpTo(args.y + i, count, LoadUpTo(x + i, count));
  }
}

void Narrow(const NarrowArgs& args, int thread, int threads) {
  const Part part = PartOf(args.rows, thread, threads);
  for (int64_t r = part.begin; r < part.end; ++r) {
    const float* x = args.x + r * args.width;
    BFloat16* y = static_cast<BFloat16*>(args.y) + r * args.stride;
    for (int64_t i = 0; i < args.width; i += kLanes) {
      const int64_t count = args.width - i;
      StoreUpTo(y + i, count, LoadUpTo(x + i, count));
    }
  }
}

template void Add<float>(const AddArgs&, int, int);
template void Add<BFloat16>(const AddArgs&, int, int);

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#include "kernels/cpu/level_end.h"
