// Finds all-gathers that are so small that their latency is most of their cost, and that can run as
// one: norms of layers whose parameters are sharded.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_SMALL_GATHERS_H_
#define TROUPE_KERNELS_XLA_RUNTIME_SMALL_GATHERS_H_

#include <cstddef>
#include <vector>

#include "kernels/xla/runtime/segment.h"

namespace troupe::kernels::xla {

// Returns sets of at least two all-gathers, as indices of the range's list in ascending order. All
// of a set may run where its first one does: until they run themselves, no operation writes their
// inputs or uses their outputs. They have the same group and dtype, blocks of the same size on all
// ranks, and different inputs. Pure.
std::vector<std::vector<size_t>> FindSmallGathers(const StagePrograms& stage, const OpRange& range);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_SMALL_GATHERS_H_
