// Cutting a model's blocks into contiguous pieces, one a pipeline chunk, by cost. Pure.
#ifndef TROUPE_PLAN_PARTITION_H_
#define TROUPE_PLAN_PARTITION_H_

#include <cstdint>
#include <vector>

#include "base/status.h"

namespace troupe {

// Costs of one microbatch in any one unit. The embedding belongs to the first piece, the head to the last.
struct PartitionCosts {
  std::vector<double> blocks;
  double embedding = 0;
  double head = 0;
};

struct Partition {
  std::vector<int> first_block;    // of each piece; the first is 0
  std::vector<double> piece_cost;  // embedding and head included
  // Largest cost over the mean: 1 is perfect balance.
  double imbalance() const;
};

// The contiguous partition into `pieces` non-empty pieces with the smallest largest cost; of several, the one whose
// last pieces are longest. INVALID_ARGUMENT where blocks are fewer than pieces.
StatusOr<Partition> PartitionByCost(const PartitionCosts& costs, int pieces);

// The partition that begins its pieces after the first at `split_points`. INVALID_ARGUMENT unless these increase
// strictly within (0, blocks).
StatusOr<Partition> PartitionAt(const PartitionCosts& costs,
                                const std::vector<int64_t>& split_points);

}  // namespace troupe

#endif  // TROUPE_PLAN_PARTITION_H_
