// y[slots[r,j]] = x[r].
#include "kernels/cpu/level_target.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

template <typename T>
void Permute(const PermuteArgs& args, int thread, int threads) {
  const Part part = PartOf(args.rows, thread, threads);
  const size_t row_bytes = args.hidden * sizeof(T);
  for (int64_t i = part.begin * args.top_k; i < part.end * args.top_k; ++i) {
    if (args.slots[i] < 0) continue;
    std::memcpy(static_cast<T*>(args.y) + args.slots[i] * args.hidden,
                static_cast<const T*>(args.x) + i / args.top_k * args.hidden, row_bytes);
  }
}

template void Permute<float>(const PermuteArgs&, int, int);
template void Permute<BFloat16>(const PermuteArgs&, int, int);

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#include "kernels/cpu/level_end.h"
