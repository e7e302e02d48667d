// Who writes what: every slice that several ranks hold alike is written by exactly one of them, or
// in parts by several, so that the work of a checkpoint is spread over the replicas.
//
// A pure function of all ranks' slices: every rank computes the same answer by itself, from the
// plan alone.
#ifndef TROUPE_CHECKPOINT_OWNERSHIP_H_
#define TROUPE_CHECKPOINT_OWNERSHIP_H_

#include <cstdint>
#include <vector>

#include "checkpoint/slice.h"

namespace troupe {

// Rows [first_row, first_row + rows) of slice `slice` of a rank's own list; rows are indices of its
// dim 0 (a scalar has one row), so that a part lies contiguous in the rank's memory.
struct OwnedRows {
  size_t slice = 0;
  int64_t first_row = 0;
  int64_t rows = 0;
  bool operator==(const OwnedRows&) const = default;
};

// For each rank the rows that it writes, in the order of its list. Parts smaller than `split_bytes`
// are not made by cutting. The ranks that hold the same slices are given equal loads as far as rows
// and `split_bytes` allow; those held by fewer ranks are given out first, so that replicas which
// have nothing else take the rest. REQUIRES: valid slices; two ranks' slices of one tensor are
// equal or do not overlap.
std::vector<std::vector<OwnedRows>> AssignOwners(
    const std::vector<std::vector<GlobalSlice>>& slices_of_rank,
    int64_t split_bytes = int64_t{1} << 20);

// The slice that `owned` is of `whole`, and where its data begin in those of `whole`.
GlobalSlice RowsOf(const GlobalSlice& whole, const OwnedRows& owned);
int64_t ByteOffsetOf(const GlobalSlice& whole, const OwnedRows& owned);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_OWNERSHIP_H_
