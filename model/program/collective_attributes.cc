#include "model/program/collective_attributes.h"

#include <algorithm>

namespace troupe::model {

const char* Name(CollectivePurpose purpose) {
  static constexpr const char* kNames[] = {"tensor",  "sequence", "context", "dispatch",
                                           "unshard", "gradient", "pipe",    "control"};
  return kNames[static_cast<int>(purpose)];
}

Range RowCut::Of(int64_t rows, int ranks, int index) const {
  if (owner >= 0) return {index <= owner ? 0 : rows, index < owner ? 0 : rows};
  const Range units = BalancedRange((rows + unit - 1) / unit, ranks, index);
  return {std::min(rows, units.begin * unit), std::min(rows, units.end * unit)};
}

}  // namespace troupe::model
