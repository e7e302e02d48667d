#include "plan/layout/partition.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace troupe {
namespace {

class CostSums {
 public:
  explicit CostSums(const PartitionCosts& costs) : costs_(costs), sums_(costs.blocks.size() + 1) {
    std::partial_sum(costs.blocks.begin(), costs.blocks.end(), sums_.begin() + 1);
  }
  int blocks() const { return static_cast<int>(costs_.blocks.size()); }
  // The cost of the piece [begin, end).
  double Of(int begin, int end) const {
    return sums_[end] - sums_[begin] + (begin == 0 ? costs_.embedding : 0) +
           (end == blocks() ? costs_.head : 0);
  }

 private:
  const PartitionCosts& costs_;
  std::vector<double> sums_;
};

Partition WithCosts(const CostSums& sums, std::vector<int> first_block) {
  Partition partition;
  for (size_t piece = 0; piece < first_block.size(); ++piece) {
    const int end = piece + 1 < first_block.size() ? first_block[piece + 1] : sums.blocks();
    partition.piece_cost.push_back(sums.Of(first_block[piece], end));
  }
  partition.first_block = std::move(first_block);
  return partition;
}

}  // namespace

double Partition::imbalance() const {
  const double total = std::accumulate(piece_cost.begin(), piece_cost.end(), 0.0);
  if (total <= 0) return 1;
  return *std::max_element(piece_cost.begin(), piece_cost.end()) *
         static_cast<double>(piece_cost.size()) / total;
}

StatusOr<Partition> PartitionByCost(const PartitionCosts& costs, int pieces) {
  TROUPE_CHECK(pieces >= 1);
  const CostSums sums(costs);
  const int blocks = sums.blocks();
  if (blocks < pieces) {
    return InvalidArgument("{} blocks cannot be split into {} pieces of at least one block", blocks,
                           pieces);
  }
  // least[p][i] is the smallest maximum cost of cutting the first i blocks into p pieces, and
  // cut[p][i] is the start of the last piece. For fixed i, least[p-1][j] increases and the last
  // piece's cost decreases with j, so the best j is where they cross: binary search.
  constexpr double kNever = std::numeric_limits<double>::infinity();
  std::vector<std::vector<int>> cut(pieces + 1, std::vector<int>(blocks + 1, 0));
  std::vector<double> before(blocks + 1, kNever);
  for (int i = 1; i <= blocks; ++i) before[i] = sums.Of(0, i);
  for (int p = 2; p <= pieces; ++p) {
    std::vector<double> least(blocks + 1, kNever);
    for (int i = p; i <= blocks; ++i) {
      int low = p - 1;
      int high = i - 1;
      while (low < high) {
        const int middle = (low + high) / 2;
        if (before[middle] >= sums.Of(middle, i)) {
          high = middle;
        } else {
          low = middle + 1;
        }
      }
      int best = low;
      double best_cost = std::max(before[low], sums.Of(low, i));
      if (low > p - 1) {
        const double other = std::max(before[low - 1], sums.Of(low - 1, i));
        if (other <= best_cost) {
          best = low - 1;
          best_cost = other;
        }
      }
      least[i] = best_cost;
      cut[p][i] = best;
    }
    before = std::move(least);
  }
  std::vector<int> first_block(pieces);
  int end = blocks;
  for (int p = pieces; p >= 1; --p) {
    first_block[p - 1] = p == 1 ? 0 : cut[p][end];
    end = first_block[p - 1];
  }
  return WithCosts(sums, std::move(first_block));
}

StatusOr<Partition> PartitionAt(const PartitionCosts& costs,
                                const std::vector<int64_t>& split_points) {
  const CostSums sums(costs);
  std::vector<int> first_block = {0};
  for (int64_t point : split_points) {
    if (point <= first_block.back() || point >= sums.blocks()) {
      return InvalidArgument("split point {} must be above {} and below the {} blocks", point,
                             first_block.back(), sums.blocks());
    }
    first_block.push_back(static_cast<int>(point));
  }
  return WithCosts(sums, std::move(first_block));
}

}  // namespace troupe
