// Finds all-gathers that are so small that their latency is most of their cost, and that can run as
// one: norms of layers whose parameters are sharded.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_SMALL_GATHERS_H_
#define TROUPE_KERNELS_XLA_RUNTIME_SMALL_GATHERS_H_

#include <cstddef>
#include <vector>

#include "kernels/xla/runtime/stage_programs.h"

namespace troupe::kernels::xla {

// Returns sets of at least two all-gathers among operations [begin, end) of a list, as indices of
// the list in ascending order. All of a set may run where its first one does: until they run
// themselves, no operation writes their inputs or uses their outputs. They have the same group and
// dtype, blocks of the same size on all ranks, and different inputs. Pure.
std::vector<std::vector<size_t>> FindSmallGathers(const StagePrograms& stage, const StageOps& ops,
                                                  size_t begin, size_t end);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_SMALL_GATHERS_H_
