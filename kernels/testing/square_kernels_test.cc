// Tests of the squares of elements and of their gradient.
#include "kernels/testing/kernel_test.h"

namespace troupe::kernels {
namespace {

using model::OpKind;

TEST_P(KernelTest, SquareMatches) {
  for (const auto& [rows, hidden] : kShapes) {
    const std::vector<int64_t> extents = {rows, hidden};
    ExpectEqual({OpKind::kSquare, {}, {Compute(extents)}, {Empty(compute(), extents)}}, 1);
    ExpectEqual({OpKind::kSquareGrad,
                 {},
                 {Compute(extents), Compute(extents)},
                 {Empty(compute(), extents)}},
                2);
  }
}

}  // namespace
}  // namespace troupe::kernels
