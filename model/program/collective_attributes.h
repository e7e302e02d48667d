// The attributes of collectives: a struct for each meaning, with the group and the purpose in
// common. op_kinds.def lists which kinds have which.
#ifndef TROUPE_MODEL_PROGRAM_COLLECTIVE_ATTRIBUTES_H_
#define TROUPE_MODEL_PROGRAM_COLLECTIVE_ATTRIBUTES_H_

#include <cstdint>
#include <vector>

#include "base/metrics/purpose.h"
#include "model/program/collective_group.h"
#include "model/program/context_rows.h"
#include "model/program/value.h"

namespace troupe::model {

using CollectivePurpose = Purpose;

enum class ReduceKind : uint8_t { kSum, kMax };

// The division of rows among the ranks of a group, in group order.
struct RowCut {
  // Rows that stay together: blocks are balanced in whole units; the last block may end with a
  // partial unit.
  int64_t unit = 1;
  // The rank that has all rows, while the others have none; -1: each rank has a block.
  int32_t owner = -1;
  bool operator==(const RowCut&) const = default;
  // The rows of rank `index` of `ranks`.
  Range Of(int64_t rows, int ranks, int index) const;
};

// For kCopy and kControlReduce, which need nothing else.
struct CollectiveAttributes {
  CollectiveGroup group;
  CollectivePurpose purpose = CollectivePurpose::kTensor;
};

struct AllReduceAttributes : CollectiveAttributes {
  ReduceKind reduce = ReduceKind::kSum;
  // The dtype in which ranks send the terms of a sum of f32: bf16 if they are rounded to it. Sums
  // are computed in f32, each on one rank; the result is rounded too.
  DType wire = DType::kFloat32;
  // The sum of a whole bucket of gradients, including the padding after the last.
  bool of_bucket = false;
};

// A sum of which each rank keeps a block of rows.
struct ReduceScatterAttributes : CollectiveAttributes {
  RowCut cut;  // the blocks of the ranks
  // The number of equal parts of the whole rows; a rank has its block of each part
  // (ShardHow::kParts if there are several). Operations that run have one part:
  // passes/tensor_parts.cc splits the others.
  int32_t row_parts = 1;
  // As for kAllReduce, but the result is not rounded.
  DType wire = DType::kFloat32;
};

struct AllGatherAttributes : CollectiveAttributes {
  RowCut cut;             // the blocks of the ranks
  int32_t row_parts = 1;  // as for kReduceScatter
  // Extent of the result's dim 0 on this rank; 0: the input's extent times the ranks of the group.
  int64_t extent = 0;
  // The result is Replicated on the group, not Copied.
  bool replicated = false;
  // The segments of the result; blocks ignore them.
  std::vector<Segment> segments;
};

// For kAllToAll, kGatherRouted and kScatterRouted: rows whose numbers are run-time counts.
struct RoutedRowsAttributes : CollectiveAttributes {
  // Upper bounds of the input and output rows; of kAllToAll only with counts.
  int64_t rows_in = 0, rows_out = 0;
  // Rows of all ranks together if tokens spread evenly, for costs. Not for kAllToAll.
  int64_t expected_rows = 0;
};

struct ExchangeHeadsAttributes : CollectiveAttributes {
  int64_t samples = 0;   // in the rows
  int64_t head_dim = 0;  // columns that stay together
  bool to_rows = false;  // columns → rows, else rows → columns
};

struct RelayoutAttributes : CollectiveAttributes {
  int64_t samples = 0;        // in the rows
  bool to_head_tail = false;  // contiguous parts → head and tail chunks, else the inverse
  ChunkLayout from() const {
    return to_head_tail ? ChunkLayout::kContiguous : ChunkLayout::kHeadTail;
  }
  ChunkLayout to() const {
    return to_head_tail ? ChunkLayout::kHeadTail : ChunkLayout::kContiguous;
  }
};

struct ShiftAttributes : CollectiveAttributes {
  int32_t shift = 0;  // the number of places that the input moves along the ring
};

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_COLLECTIVE_ATTRIBUTES_H_
