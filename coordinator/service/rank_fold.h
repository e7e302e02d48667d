// A figure that each rank of a job measures in each step, folded into as many series as any number
// of ranks may have: the median, and the ranks with the highest values by name.
//
// Not thread-safe.
#ifndef TROUPE_COORDINATOR_SERVICE_RANK_FOLD_H_
#define TROUPE_COORDINATOR_SERVICE_RANK_FOLD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace troupe {

class RankFold {
 public:
  static constexpr size_t kMostNamed = 8;

  // Sets the value of `rank` in `step`. If the rank was ahead of this step, the job was restored
  // from a checkpoint, and all earlier values are dropped, because it may have other ranks now.
  void Set(int rank, int64_t step, double value);

  struct Result {
    double median = 0;
    std::map<int, double> worst;  // by rank; at most kMostNamed
    std::vector<int> dropped;     // ranks that the former result named and this one does not
  };
  // Folds the values of the newest steps: a rank that is more than one step behind has ended.
  // REQUIRES: there is a value.
  Result Fold();
  // The values that the last Fold folded, in the order of ranks. REQUIRES: no Set since.
  std::vector<double> Values() const;

 private:
  struct Value {
    int64_t step = 0;
    double value = 0;
  };

  std::map<int, Value> values_;     // by rank
  std::map<int, double> reported_;  // the worst ranks of the last result
  int64_t newest_step_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_RANK_FOLD_H_
