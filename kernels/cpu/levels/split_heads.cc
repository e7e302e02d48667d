// Splits rows of q | k | v into rows of q and rows of k | v, or joins them; rows are bytes.
#include "kernels/cpu/level_target.h"

namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE {

void SplitHeads(const SplitHeadsArgs& args, int thread, int threads) {
  const Part part = PartOf(args.rows, thread, threads);
  for (int64_t row = part.begin; row < part.end; ++row) {
    char* qkv = static_cast<char*>(args.qkv) + row * (args.q_bytes + args.kv_bytes);
    char* q = static_cast<char*>(args.q) + row * args.q_bytes;
    char* kv = static_cast<char*>(args.kv) + row * args.kv_bytes;
    if (args.join) {
      std::memcpy(qkv, q, static_cast<size_t>(args.q_bytes));
      std::memcpy(qkv + args.q_bytes, kv, static_cast<size_t>(args.kv_bytes));
    } else {
      std::memcpy(q, qkv, static_cast<size_t>(args.q_bytes));
      std::memcpy(kv, qkv + args.q_bytes, static_cast<size_t>(args.kv_bytes));
    }
  }
}

}  // namespace troupe::kernels::cpu::TROUPE_LEVEL_NAMESPACE

#include "kernels/cpu/level_end.h"
