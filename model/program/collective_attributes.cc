#include "model/program/collective_attributes.h"

#include <algorithm>

namespace troupe::model {

Range RowCut::Of(int64_t rows, int ranks, int index) const {
  if (owner >= 0) return {index <= owner ? 0 : rows, index < owner ? 0 : rows};
  const Range units = BalancedRange((rows + unit - 1) / unit, ranks, index);
  return {std::min(rows, units.begin * unit), std::min(rows, units.end * unit)};
}

}  // namespace troupe::model
