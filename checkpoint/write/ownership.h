// Assigns the writers of a checkpoint. A slice that several ranks hold is written by exactly one of
// them, or in disjoint parts by several, so that the replicas share the work.
//
// The assignment is a pure function of all ranks' slices: every rank computes the same result by
// itself, from the plan alone.
#ifndef TROUPE_CHECKPOINT_WRITE_OWNERSHIP_H_
#define TROUPE_CHECKPOINT_WRITE_OWNERSHIP_H_

#include <cstdint>
#include <vector>

#include "checkpoint/format/slice.h"

namespace troupe {

// Rows [first_row, first_row + rows) of entry `slice` of a rank's own list. Rows are indices of dim
// 0 (a scalar has one row), so a part is contiguous in the rank's memory.
struct OwnedRows {
  size_t slice = 0;
  int64_t first_row = 0;
  int64_t rows = 0;
  bool operator==(const OwnedRows&) const = default;
};

// Returns for each rank the rows that it writes, in the order of its list. No cut produces a part
// smaller than `split_bytes`. Ranks that hold the same slices receive equal loads as far as rows
// and `split_bytes` allow. Slices with fewer holders are assigned first, so that the replicas
// without other work take the rest. REQUIRES: valid slices; two ranks' slices of one tensor are
// equal or disjoint.
std::vector<std::vector<OwnedRows>> AssignOwners(
    const std::vector<std::vector<GlobalSlice>>& slices_of_rank,
    int64_t split_bytes = int64_t{1} << 20);

// RowsOf returns the slice that consists of rows `owned` of `whole`; ByteOffsetOf returns the
// offset of its data in the data of `whole`, in bytes.
GlobalSlice RowsOf(const GlobalSlice& whole, const OwnedRows& owned);
int64_t ByteOffsetOf(const GlobalSlice& whole, const OwnedRows& owned);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_WRITE_OWNERSHIP_H_
