// Compares the derivative of kSquare with finite differences.
#include "kernels/reference/gradient_test.h"

namespace troupe::kernels {
namespace {

using model::OpKind;

TEST_F(ReferenceGradient, OfSquare) {
  const std::vector<int64_t> extents = {3, 5};
  const std::vector<double> dy = random_.Normals(15);
  const TestValue x = Doubles(extents, random_.Normals(15));
  const TestOp op{OpKind::kSquare, {}, {x}, {Empty(extents)}};
  const TestResult gradient =
      Run({OpKind::kSquareGrad, {}, {Doubles(extents, dy), x}, {Empty(extents)}});
  EXPECT_LE(RelativeError(gradient.outputs[0], OfInput(op, 0, dy)), kTolerance);
}

}  // namespace
}  // namespace troupe::kernels
