// Tests of the operations that write lanes of the control word other than gradients and losses.
#include "kernels/testing/kernel_test.h"

#include <cmath>

#include "model/program/control_word.h"

namespace troupe::kernels {
namespace {

using model::OpKind;

TEST_P(KernelTest, ChoicesOfAllRoutersAreCountedExactly) {
  if (compute() == model::DType::kBFloat16) GTEST_SKIP() << "control words have no compute dtype";
  ReferenceBackend reference;
  for (const std::vector<int64_t>& experts :
       std::vector<std::vector<int64_t>>{{1}, {3, 129, 1024, 64}}) {
    // New counts are added to the previous ones; the other lanes stay unchanged.
    const std::vector<double> control = random_.Integers(model::kControlLanes, 0, 1000);
    std::vector<double> expected = control;
    TestOp op{OpKind::kControlRouted,
              model::NoAttributes{},
              {{model::DType::kFloat64, {model::kControlLanes}, control}},
              {}};
    for (const int64_t count : experts) {
      // Two losses (not counts), the dropped choices, then the experts' counts.
      std::vector<double> totals = random_.Normals(2);
      const std::vector<double> counts = random_.Integers(1 + count, 0, 1 << 30);
      totals.insert(totals.end(), counts.begin(), counts.end());
      op.inputs.push_back({model::DType::kFloat64, {model::kRouterLanes + count}, totals});
      expected[model::kLaneDropped] += counts[0];
      for (int64_t e = 1; e <= count; ++e) expected[model::kLaneRouted] += counts[e];
    }
    EXPECT_EQ(RunOp(*backend_, op).inputs[0], expected) << experts.size() << " routers";
    EXPECT_EQ(RunOp(reference, op).inputs[0], expected) << experts.size() << " routers";
  }
}

TEST_P(KernelTest, WhatIsNotFiniteHaltsThisAndEveryLaterStep) {
  if (compute() == model::DType::kBFloat16) GTEST_SKIP() << "control words have no compute dtype";
  ReferenceBackend reference;
  struct Case {
    int lane;
    double number;
    double halted;  // value before the operation
    double expected;
  };
  for (const Case& now : std::vector<Case>{{model::kLaneLoss, 3, 0, 0},
                                           {model::kLaneLoss, 3, 1, 1},
                                           {model::kLaneNonfinite, 2, 0, 1},
                                           {model::kLaneSumOfSquares, INFINITY, 0, 1},
                                           {model::kLaneWeight, 0, 0, 0},
                                           {model::kLaneWeight, -1, 0, 1}}) {
    std::vector<double> control(model::kControlLanes, 0.0);
    control[model::kLaneSumOfSquares] = 5;
    control[model::kLaneWeight] = 2;
    control[now.lane] = now.number;
    std::vector<double> expected = control;
    expected[model::kLaneHalted] = now.expected;
    const TestOp op{OpKind::kControlHalt,
                    model::NoAttributes{},
                    {{model::DType::kFloat64, {model::kControlLanes}, control},
                     {model::DType::kFloat64, {1}, {now.halted}}},
                    {}};
    for (Backend* backend : {backend_.get(), static_cast<Backend*>(&reference)}) {
      const TestResult result = RunOp(*backend, op);
      EXPECT_EQ(result.inputs[0], expected) << "lane " << now.lane;
      EXPECT_EQ(result.inputs[1], std::vector<double>{now.expected}) << "lane " << now.lane;
    }
  }
}

TEST_P(KernelTest, OnlyAppliedStepsAreCounted) {
  if (compute() == model::DType::kBFloat16) GTEST_SKIP() << "control words have no compute dtype";
  ReferenceBackend reference;
  struct Case {
    int lane;
    double number;
    double expected;
  };
  for (const Case& now : std::vector<Case>{{model::kLaneLoss, 3, 8},
                                           {model::kLaneWeight, 0, 8},
                                           {model::kLaneNonfinite, 2, 7},
                                           {model::kLaneHalted, 1, 7},
                                           {model::kLaneSumOfSquares, INFINITY, 7}}) {
    std::vector<double> control(model::kControlLanes, 0.0);
    control[model::kLaneWeight] = 2;
    control[static_cast<size_t>(now.lane)] = now.number;
    const TestOp op{OpKind::kCountStep,
                    model::NoAttributes{},
                    {{model::DType::kFloat64, {model::kControlLanes}, control},
                     {model::DType::kFloat32, {1}, {7.0}}},
                    {}};
    for (Backend* backend : {backend_.get(), static_cast<Backend*>(&reference)}) {
      const TestResult result = RunOp(*backend, op);
      EXPECT_EQ(result.inputs[1], std::vector<double>{now.expected}) << "lane " << now.lane;
      EXPECT_EQ(result.inputs[0], control) << "lane " << now.lane;
    }
  }
}

TEST_P(KernelTest, TotalsAreAddedAndTheRankOfANonfiniteOneIsMarked) {
  if (compute() == model::DType::kBFloat16) GTEST_SKIP() << "control words have no compute dtype";
  ReferenceBackend reference;
  const std::vector<double> control = random_.Integers(model::kControlLanes, 0, 1);
  for (const double loss : {3.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    const TestOp op{OpKind::kControlTotals,
                    model::ControlAttributes{4},
                    {{model::DType::kFloat64, {model::kControlLanes}, control},
                     {model::DType::kFloat64, {2}, {loss, 16.0}}},
                    {}};
    for (Backend* backend : {backend_.get(), static_cast<Backend*>(&reference)}) {
      const std::vector<double> result = RunOp(*backend, op).inputs[0];
      EXPECT_EQ(result[model::kLaneWeight], control[model::kLaneWeight] + 16);
      EXPECT_EQ(result[model::kLaneNonfinite],
                std::isfinite(loss) ? control[model::kLaneNonfinite] : 5);
      if (std::isfinite(loss)) {
        EXPECT_EQ(result[model::kLaneLoss], control[model::kLaneLoss] + loss);
      }
    }
  }
}

TEST_P(KernelTest, SumOfSquaresCoversAllGradients) {
  if (compute() == model::DType::kBFloat16) GTEST_SKIP() << "gradients have no compute dtype";
  ReferenceBackend reference;
  for (const std::vector<int64_t>& counts : std::vector<std::vector<int64_t>>{{1}, {17, 5000, 3}}) {
    TestOp op{OpKind::kSumOfSquares,
              model::ControlAttributes{2},
              {{model::DType::kFloat64, {model::kControlLanes}, {}}},
              {}};
    for (const int64_t count : counts) op.inputs.push_back(Floats({count}));
    const std::vector<double> actual = RunOp(*backend_, op).inputs[0];
    const std::vector<double> expected = RunOp(reference, op).inputs[0];
    EXPECT_LE(RelativeError(actual, expected), 1e-12);
    op.inputs.back().numbers.back() = INFINITY;
    EXPECT_EQ(RunOp(*backend_, op).inputs[0][model::kLaneNonfinite], 3);
  }
}

}  // namespace
}  // namespace troupe::kernels
