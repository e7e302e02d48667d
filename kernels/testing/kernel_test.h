// Tests every kernel of a backend, in both compute dtypes, against the float64 reference on fresh
// random inputs. Extents include 1, odd numbers, neighbours of the vector width, and common sizes.
// The files that test families of kernels (row_kernels_test.cc and so on) are compiled into each
// backend's test, which chooses the backend with INSTANTIATE_TEST_SUITE_P.
#ifndef TROUPE_KERNELS_TESTING_KERNEL_TEST_H_
#define TROUPE_KERNELS_TESTING_KERNEL_TEST_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/test_extent.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/testing/testing.h"

namespace troupe::kernels {

struct KernelSetting {
  std::string name;
  model::DType compute;
  std::function<std::unique_ptr<Backend>()> make;
  // Whether operations have the same bits alone and as a part of another; not where a compiler may
  // combine a product and a sum into one rounding in the one and not in the other.
  bool keeps_bits_in_company = true;
  // Whether each shape is compiled, which takes longer than to run it: of long tables of shapes,
  // tests then run a share.
  bool compiles_shapes = false;

  friend void PrintTo(const KernelSetting& setting, std::ostream* out) { *out << setting.name; }
};

inline std::string NameOfSetting(const testing::TestParamInfo<KernelSetting>& info) {
  return info.param.name;
}

class KernelTest : public testing::TestWithParam<KernelSetting> {
 protected:
  using DType = model::DType;

  DType compute() const { return GetParam().compute; }
  // The shapes that the test runs: every `nth` of them if each is compiled.
  template <typename Shape>
  std::vector<Shape> ShareOf(const std::vector<Shape>& shapes, size_t nth) const {
    return GetParam().compiles_shapes ? Share(shapes, nth) : shapes;
  }
  TestValue Compute(std::vector<int64_t> extents, double scale = 1.0) {
    return Random(compute(), std::move(extents), scale);
  }
  TestValue Floats(std::vector<int64_t> extents, double scale = 1.0) {
    return Random(DType::kFloat32, std::move(extents), scale);
  }
  TestValue Ints(int64_t count, int64_t low, int64_t high) {
    return {DType::kInt32, {count}, random_.Integers(count, low, high)};
  }
  TestValue Random64(std::vector<int64_t> extents) {
    return Random(DType::kFloat64, std::move(extents), 1.0);
  }
  // Tolerance for sums of few terms in outputs with few elements: in float32 all of them may
  // cancel.
  double Loose() const { return compute() == DType::kBFloat16 ? 4 : 4096; }
  static TestValue Empty(DType dtype, std::vector<int64_t> extents) {
    return {dtype, std::move(extents), {}};
  }

  // Runs `op` on both backends and expects every output within `slack` units in the last place of
  // its dtype, relative to the output's largest element. A second run must give the same bits.
  void ExpectEqual(const TestOp& op, double slack, const RunOptions& options = {}) {
    ReferenceBackend reference;
    // The reference gets the same rounded inputs as the kernels.
    TestOp rounded = op;
    const TestResult actual = RunOp(*backend_, op, options);
    const TestResult expected = RunOp(reference, rounded, options);
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      const double unit = op.outputs[i].dtype == DType::kBFloat16 || compute() == DType::kBFloat16
                              ? 0x1.0p-8
                              : 0x1.0p-23;
      EXPECT_LE(RelativeError(actual.outputs[i], expected.outputs[i]), slack * unit)
          << "output " << i << " of " << Shapes(op);
    }
    EXPECT_EQ(RunOp(*backend_, op, options).outputs, actual.outputs) << Shapes(op);
  }

  // Expects the numbers of an operation within another to be those of the operation alone: bit for
  // bit where the backend keeps them, else within a few units in the last place of the largest.
  void ExpectSameBits(const std::vector<double>& within, const std::vector<double>& alone) const {
    if (GetParam().keeps_bits_in_company) {
      EXPECT_EQ(within, alone);
    } else {
      const double unit = compute() == DType::kBFloat16 ? 0x1.0p-8 : 0x1.0p-23;
      EXPECT_LE(RelativeError(within, alone), 4 * unit);
    }
  }

  // For matmuls, whose results are sums: expects each element within a few units in the last place
  // of the sum of its terms' magnitudes, which stays above zero if the terms cancel (Higham,
  // Accuracy and Stability of Numerical Algorithms, 3.5).
  void ExpectSums(const TestOp& op, const RunOptions& options = {}) {
    constexpr double kSlack = 4;
    ReferenceBackend reference;
    TestOp magnitudes = op;
    for (std::vector<TestValue>* values : {&magnitudes.inputs, &magnitudes.outputs}) {
      for (TestValue& value : *values) {
        for (double& number : value.numbers) number = std::abs(number);
      }
    }
    const TestResult actual = RunOp(*backend_, op, options);
    const TestResult expected = RunOp(reference, op, options);
    const TestResult terms = RunOp(reference, magnitudes, options);
    const double unit = compute() == DType::kBFloat16 ? 0x1.0p-8 : 0x1.0p-23;
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      ASSERT_EQ(actual.outputs[i].size(), expected.outputs[i].size());
      double worst = 0;
      for (size_t j = 0; j < expected.outputs[i].size(); ++j) {
        const double error = std::abs(actual.outputs[i][j] - expected.outputs[i][j]);
        // A NaN where the reference has a number counts as an infinite error.
        const double share = error == 0 ? 0 : error / terms.outputs[i][j];
        worst = std::isnan(share) ? HUGE_VAL : std::max(worst, share);
      }
      EXPECT_LE(worst, kSlack * unit) << "output " << i << " of " << Shapes(op);
    }
    EXPECT_EQ(RunOp(*backend_, op, options).outputs, actual.outputs) << Shapes(op);
  }

  static std::string Shapes(const TestOp& op) {
    std::string text = model::Name(op.kind);
    for (const TestValue& value : op.inputs) {
      text += " [";
      for (const int64_t extent : value.extents) text += std::to_string(extent) + ",";
      text += "]";
    }
    return text;
  }

  TestRandom random_;
  std::unique_ptr<Backend> backend_ = GetParam().make();

 private:
  TestValue Random(DType dtype, std::vector<int64_t> extents, double scale) {
    int64_t count = 1;
    for (const int64_t extent : extents) count *= extent;
    return {dtype, std::move(extents), random_.Normals(count, scale)};
  }
};

inline const std::vector<std::pair<int64_t, int64_t>> kShapes = {{1, 1},  {1, 7},    {3, 16},
                                                                 {5, 33}, {65, 129}, {96, 256}};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_TESTING_KERNEL_TEST_H_
