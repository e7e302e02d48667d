// Compares derivatives of the reference with finite differences of its forward operations, in
// float64 on fresh random inputs.
#ifndef TROUPE_KERNELS_REFERENCE_GRADIENT_TEST_H_
#define TROUPE_KERNELS_REFERENCE_GRADIENT_TEST_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "kernels/reference/reference_backend.h"
#include "kernels/testing/testing.h"

namespace troupe::kernels {

inline constexpr double kStep = 1e-5;
inline constexpr double kTolerance = 1e-7;

// float64 values are stored unrounded, so that a difference of 1e-5 is preserved.
inline TestValue Doubles(std::vector<int64_t> extents, std::vector<double> numbers) {
  return {model::DType::kFloat64, std::move(extents), std::move(numbers)};
}
inline TestValue Empty(std::vector<int64_t> extents) {
  return {model::DType::kFloat64, std::move(extents), {}};
}

inline double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The gradient of `loss` at `x` by central differences.
inline std::vector<double> Differences(
    const std::vector<double>& x, const std::function<double(const std::vector<double>&)>& loss) {
  std::vector<double> gradient(x.size());
  std::vector<double> moved = x;
  for (size_t i = 0; i < x.size(); ++i) {
    moved[i] = x[i] + kStep;
    const double above = loss(moved);
    moved[i] = x[i] - kStep;
    gradient[i] = (above - loss(moved)) / (2 * kStep);
    moved[i] = x[i];
  }
  return gradient;
}

class ReferenceGradient : public testing::Test {
 protected:
  TestResult Run(const TestOp& op) { return RunOp(backend_, op); }

  // The derivative of Σ outputs[0] · dy with respect to input `input` of `op`.
  std::vector<double> OfInput(const TestOp& op, int input, const std::vector<double>& dy) {
    return Differences(op.inputs[input].numbers, [&](const std::vector<double>& moved) {
      TestOp changed = op;
      changed.inputs[input].numbers = moved;
      return Dot(Run(changed).outputs[0], dy);
    });
  }

  TestRandom random_;
  ReferenceBackend backend_;
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_REFERENCE_GRADIENT_TEST_H_
