// Cuts a model's blocks into contiguous pieces by cost, one for each pipeline chunk. Pure.
#ifndef TROUPE_PLAN_LAYOUT_PARTITION_H_
#define TROUPE_PLAN_LAYOUT_PARTITION_H_

#include <cstdint>
#include <vector>

#include "base/status.h"

namespace troupe {

// Costs of one microbatch in any one unit. The embedding belongs to the first piece, the head to
// the last.
struct PartitionCosts {
  std::vector<double> blocks;
  double embedding = 0;
  double head = 0;
};

struct Partition {
  std::vector<int> first_block;    // by piece; the first entry is 0
  std::vector<double> piece_cost;  // by piece, embedding and head included
  // The largest piece cost over the mean: 1 is perfect balance.
  double imbalance() const;
};

// Returns the contiguous partition into `pieces` non-empty pieces with the smallest maximum cost;
// among several, the one with the longest last pieces. INVALID_ARGUMENT where there are fewer
// blocks than pieces.
StatusOr<Partition> PartitionByCost(const PartitionCosts& costs, int pieces);

// Returns the partition whose pieces after the first begin at `split_points`. INVALID_ARGUMENT
// unless these increase strictly within (0, blocks).
StatusOr<Partition> PartitionAt(const PartitionCosts& costs,
                                const std::vector<int64_t>& split_points);

}  // namespace troupe

#endif  // TROUPE_PLAN_LAYOUT_PARTITION_H_
