// Inserts operations into a list of operations.
#ifndef TROUPE_MODEL_PASSES_INSERTIONS_H_
#define TROUPE_MODEL_PASSES_INSERTIONS_H_

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "model/program/op.h"

namespace troupe::model {

// Operations to insert, each before the operation of a list with an index; those before the same
// operation keep the order in which they were added.
class Insertions {
 public:
  void emplace(size_t index, Op op) { before_.emplace_back(index, std::move(op)); }

 private:
  friend void Insert(std::vector<Op>& ops, Insertions insertions);
  std::vector<std::pair<size_t, Op>> before_;
};

inline void Insert(std::vector<Op>& ops, Insertions insertions) {
  if (insertions.before_.empty()) return;
  std::vector<size_t> order(insertions.before_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return insertions.before_[i].first; });
  std::vector<Op> merged;
  merged.reserve(ops.size() + order.size());
  auto next = order.begin();
  for (size_t i = 0; i <= ops.size(); ++i) {
    for (; next != order.end() && insertions.before_[*next].first == i; ++next)
      merged.push_back(std::move(insertions.before_[*next].second));
    if (i < ops.size()) merged.push_back(std::move(ops[i]));
  }
  ops = std::move(merged);
}

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PASSES_INSERTIONS_H_
