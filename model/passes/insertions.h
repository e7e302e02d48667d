// Inserts operations into a list of operations.
#ifndef TROUPE_MODEL_PASSES_INSERTIONS_H_
#define TROUPE_MODEL_PASSES_INSERTIONS_H_

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "model/program/op.h"

namespace troupe::model {

// Keyed by the index of the operation before which they are inserted; equal keys keep the order of
// insertion.
using Insertions = std::multimap<size_t, Op>;

inline void Insert(std::vector<Op>& ops, Insertions insertions) {
  std::vector<Op> merged;
  merged.reserve(ops.size() + insertions.size());
  auto next = insertions.begin();
  for (size_t i = 0; i <= ops.size(); ++i) {
    for (; next != insertions.end() && next->first == i; ++next)
      merged.push_back(std::move(next->second));
    if (i < ops.size()) merged.push_back(std::move(ops[i]));
  }
  ops = std::move(merged);
}

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PASSES_INSERTIONS_H_
