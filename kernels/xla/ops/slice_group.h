// The group of a collective within a slice: the partitions that exchange with each other.
#ifndef TROUPE_KERNELS_XLA_OPS_SLICE_GROUP_H_
#define TROUPE_KERNELS_XLA_OPS_SLICE_GROUP_H_

#include "base/status.h"
#include "kernels/xla/ops/lowering.h"
#include "kernels/xla/text/function.h"

namespace troupe::kernels::xla {

// In all functions the operation is a collective of axes or of all ranks, which lies within the
// slice. All are pure.

// Whether its group has several ranks of a slice.
bool HasPeers(const Lowering& lowering);
// The number of ranks in a group, and this rank's index among them.
int GroupSizeOf(const Lowering& lowering);
int IndexInGroupOf(const Lowering& rank);
// The partitions of each group, in group order.
Function::Groups PartitionGroups(const Lowering& lowering);

// UNIMPLEMENTED, which names the value, if a rank has other extents of an input or output.
Status ExpectEqualExtents(const Lowering& lowering);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_OPS_SLICE_GROUP_H_
