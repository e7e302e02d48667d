// Selects the assignments of this rank's experts among those of all ranks of the group.
#include "kernels/cuda/kernels/experts/sort_by_expert.h"
#include "kernels/cuda/kernels/kernels.h"

namespace troupe::kernels::cuda {

int64_t RouterSlotsScratchBytes(const RouterSlotsArgs& args) {
  return ExpertSortScratchBytes(args.assignments, args.router.local_experts);
}

std::array<KernelLaunch, 3> RouterSlots(const RouterSlotsArgs& args, void* scratch) {
  return SortByExpert({.expert_ids = args.expert_ids,
                       .kept = args.slots,
                       .slots = args.own,
                       .counts = args.counts,
                       .before = static_cast<int32_t*>(scratch),
                       .assignments = args.assignments,
                       .first_expert = args.router.first_expert,
                       .experts = args.router.local_experts,
                       .capacity = 0});
}

}  // namespace troupe::kernels::cuda
