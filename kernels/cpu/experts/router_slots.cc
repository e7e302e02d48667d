#include <algorithm>

#include "kernels/cpu/kernels.h"

namespace troupe::kernels::cpu {

void RouterSlots(const RouterSlotsArgs& args, int, int) {
  const int64_t first = args.router.first_expert, experts = args.router.local_experts;
  std::fill_n(args.counts, experts, 0);
  const auto is_own = [&](int64_t i) {
    const int64_t e = args.expert_ids[i] - first;
    return e >= 0 && e < experts && args.slots[i] >= 0;
  };
  for (int64_t i = 0; i < args.assignments; ++i) {
    if (is_own(i)) ++args.counts[args.expert_ids[i] - first];
  }
  int32_t next[model::kMaxExperts];
  int32_t begin = 0;
  for (int64_t e = 0; e < experts; ++e) {
    next[e] = begin;
    begin += args.counts[e];
  }
  for (int64_t i = 0; i < args.assignments; ++i) {
    args.own[i] = is_own(i) ? next[args.expert_ids[i] - first]++ : -1;
  }
}

}  // namespace troupe::kernels::cpu
