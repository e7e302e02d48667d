// Shared fixture for FP8 tests. Only for backends with bfloat16, because no other dtype is
// quantised.
#ifndef TROUPE_KERNELS_TESTING_FLOAT8_KERNEL_TEST_H_
#define TROUPE_KERNELS_TESTING_FLOAT8_KERNEL_TEST_H_

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/testing/kernel_test.h"

namespace troupe::kernels {

class Float8KernelTest : public KernelTest {
 protected:
  using QuantizeAttributes = model::QuantizeAttributes;

  // Expects the outputs of backend and reference to be equal, NaN included, in each of two runs.
  void ExpectSame(const TestOp& op, const RunOptions& options = {}) {
    ReferenceBackend reference;
    ExpectSameAs(RunOp(reference, op, options), op, options);
  }
  void ExpectSameAs(const TestResult& expected, const TestOp& op, const RunOptions& options) {
    for (int run = 0; run < 2; ++run) {
      const TestResult actual = RunOp(*backend_, op, options);
      for (size_t i = 0; i < op.outputs.size(); ++i) {
        ASSERT_EQ(actual.outputs[i].size(), expected.outputs[i].size());
        for (size_t j = 0; j < expected.outputs[i].size(); ++j) {
          const double a = actual.outputs[i][j], e = expected.outputs[i][j];
          ASSERT_TRUE(a == e || (std::isnan(a) && std::isnan(e)))
              << "output " << i << " element " << j << " is " << a << " for " << e << " of "
              << Shapes(op);
        }
      }
    }
  }

  // Expects SwiGLU of gu (or its gradient of dy and gu) quantised in one operation to equal the
  // result of two operations.
  void ExpectAsWritten(const QuantizeAttributes& attributes, const std::vector<TestValue>& made_of,
                       const std::vector<double>& history = {}, bool first_writer = false) {
    const bool is_gradient = made_of.size() == 2;
    const std::vector<int64_t>& gu = made_of.back().extents;
    const TestOp maker{is_gradient ? model::OpKind::kSwiGluGrad : model::OpKind::kSwiGlu,
                       {},
                       made_of,
                       {Empty(compute(), {gu[0], is_gradient ? gu[1] : gu[1] / 2})}};
    const RunOptions options = {.first_microbatch = true};
    const TestValue written = {compute(), maker.outputs[0].extents,
                               RunOp(*backend_, maker, options).outputs[0]};
    TestOp in_two = QuantizeOp(attributes, written, history),
           in_one = SourceOp(attributes, made_of, history);
    in_two.first_writer = in_one.first_writer = first_writer;
    ExpectSameAs(RunOp(*backend_, in_two, options), in_one, options);
  }

  static TestOp SourceOp(QuantizeAttributes attributes, const std::vector<TestValue>& made_of,
                         const std::vector<double>& history = {}) {
    const bool is_gradient = made_of.size() == 2;
    const std::vector<int64_t>& gu = made_of.back().extents;
    const TestValue value = Empty(made_of.back().dtype, {gu[0], is_gradient ? gu[1] : gu[1] / 2});
    TestOp op = QuantizeOp(attributes, value, history);
    attributes.source =
        is_gradient ? model::QuantizeSource::kSwiGluGrad : model::QuantizeSource::kSwiGlu;
    op.attributes = attributes;
    op.inputs.erase(op.inputs.begin());
    op.inputs.insert(op.inputs.begin(), made_of.begin(), made_of.end());
    return op;
  }

  static int64_t Blocks(int64_t extent, int64_t size) { return (extent + size - 1) / size; }

  static TestOp QuantizeOp(const QuantizeAttributes& attributes, TestValue x,
                           std::vector<double> history = {}) {
    const int64_t rows = x.extents[0], columns = x.extents[1];
    TestOp op{model::OpKind::kQuantize, attributes, {std::move(x)}, {}};
    if (!history.empty())
      op.inputs.push_back({DType::kFloat32, {model::kAmaxSteps}, std::move(history)});
    if (attributes.rows) op.outputs.push_back(Empty(attributes.format, {rows, columns}));
    if (attributes.columns) op.outputs.push_back(Empty(attributes.format, {columns, rows}));
    if (attributes.block_rows == 0) {
      op.outputs.push_back(Empty(DType::kFloat32, {1}));
    } else {
      for (const bool transposed : {false, true}) {
        if (!(transposed ? attributes.columns : attributes.rows)) continue;
        const int64_t lines = transposed ? columns : rows, width = transposed ? rows : columns;
        op.outputs.push_back(Empty(DType::kFloat32, {Blocks(lines, attributes.block_rows),
                                                     Blocks(width, model::kFloat8Block)}));
      }
    }
    if (attributes.folds) op.outputs.push_back({DType::kFloat32, {1}, {2.5}});
    return op;
  }

  // Random numbers with a wide range of magnitudes.
  TestValue Wide(int64_t rows, int64_t columns) {
    TestValue x = Compute({rows, columns});
    for (double& number : x.numbers)
      number *= std::exp2(static_cast<double>(random_.Integer(-12, 6)));
    return x;
  }

  // An FP8 operand with random scales: one for the tensor, or one for each 1 x 128 or 128 x 128
  // block.
  std::pair<TestValue, TestValue> Operand(DType format, int64_t rows, int64_t columns,
                                          int block_rows) {
    TestValue operand{format, {rows, columns}, random_.Normals(rows * columns, 3.0)};
    std::vector<int64_t> extents = {1};
    if (block_rows > 0) extents = {Blocks(rows, block_rows), Blocks(columns, model::kFloat8Block)};
    int64_t count = 1;
    for (const int64_t extent : extents) count *= extent;
    TestValue scale{DType::kFloat32, extents, {}};
    for (int64_t i = 0; i < count; ++i) {
      scale.numbers.push_back(std::exp2(static_cast<double>(random_.Integer(-6, 2))));
    }
    return {operand, scale};
  }
};

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_TESTING_FLOAT8_KERNEL_TEST_H_
