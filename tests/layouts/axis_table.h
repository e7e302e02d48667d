// The layouts of the dense model under which every backend is compared with one rank: each axis
// alone, each pair of axes, and eight mixes of eight ranks.
#ifndef TROUPE_TESTS_LAYOUTS_AXIS_TABLE_H_
#define TROUPE_TESTS_LAYOUTS_AXIS_TABLE_H_

#include <string>
#include <vector>

#include "troupe/v1/job.pb.h"

namespace troupe {

// A form of an axis and its degree. Forms of an axis that communicate differently have separate
// names, such as "Ring" and "Exchange" for the context axis.
struct AxisUse {
  std::string form;
  int degree;
};
using AxisUses = std::vector<AxisUse>;

std::vector<AxisUses> AxesAlone();     // each form with 2 and with 4 ranks
std::vector<AxisUses> PairsOfAxes();   // forms of two axes, each with 2 ranks
std::vector<AxisUses> MixesOfEight();  // eight ranks over two or three axes

// Returns the rows of `table` that slices run: matrices that are sharded whole are refused there.
// A row of a pipeline alone has no slice of several ranks.
std::vector<AxisUses> RowsOfSlices(std::vector<AxisUses> table);

// Sets the keys of `uses`. Each form must be one of the table's.
void SetAxes(const AxisUses& uses, v1::ParallelismSpec* parallelism);

// Returns a name such as "Ring2Tensor2", or "One" without a use.
std::string NameOf(const AxisUses& uses);

}  // namespace troupe

#endif  // TROUPE_TESTS_LAYOUTS_AXIS_TABLE_H_
