#include <algorithm>

#include "kernels/cpu/kernels.h"

namespace troupe::kernels::cpu {

void RouterLoad(const RouterLoadArgs& args, int, int) {
  const int64_t experts = args.router.experts, k = args.router.top_k;
  std::fill_n(args.load, args.samples * (experts + 1), 0.0f);
  for (int64_t r = 0; r < args.rows; ++r) {
    const int64_t row = args.router.first_row + r;
    float* load = args.load + row / args.router.local_tokens * (experts + 1);
    for (int64_t j = 0; j < k; ++j) load[args.expert_ids[r * k + j]] += 1;
    load[experts] += args.weights[row];
  }
}

}  // namespace troupe::kernels::cpu
