// Mixtures of experts: what the tests of all backends leave open.
#include <cmath>

#include "kernels/testing/kernel_test.h"
#include "kernels/testing/program_run.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

using model::DType;
using model::OpKind;

TestValue Counts(const std::vector<double>& counts) {
  return {DType::kInt32, {static_cast<int64_t>(counts.size())}, counts};
}

// The operations of a grouped matmul with `rows` rows, of 5 → 7 columns.
struct GroupedOps {
  TestOp forward, grad_input, grad_weight;
};

GroupedOps Grouped(int64_t experts, const std::vector<double>& counts, const TestValue& x,
                   const TestValue& dy, const TestValue& w) {
  const int64_t rows = x.extents[0];
  const model::GroupedAttributes grouped{experts, experts, rows, false};
  const auto empty = [](DType dtype, std::vector<int64_t> extents) {
    return TestValue{dtype, std::move(extents), {}};
  };
  return {{OpKind::kGroupedMatmul, grouped, {x, w, Counts(counts)}, {empty(x.dtype, {rows, 7})}},
          {OpKind::kGroupedMatmulGradInput,
           grouped,
           {dy, w, Counts(counts)},
           {empty(x.dtype, {rows, 5})}},
          {OpKind::kGroupedMatmulGradWeight,
           grouped,
           {dy, x, Counts(counts)},
           {empty(DType::kFloat32, {experts * 7, 5})}}};
}

TEST_P(KernelTest, GroupedMatmulsOfSeveralTilesMatch) {
  for (const auto& [experts, counts] : std::vector<std::pair<int64_t, std::vector<double>>>{
           {2, {130, 65, 0, 505}}, {1, {3, 0, 300}}, {2, {1, 1}}}) {
    int64_t rows = 0;
    for (const double count : counts) rows += static_cast<int64_t>(count);
    const GroupedOps ops =
        Grouped(experts, counts, Compute({rows, 5}), Compute({rows, 7}), Compute({experts * 7, 5}));
    ExpectSums(ops.forward);
    ExpectSums(ops.grad_input);
    ExpectSums(ops.grad_weight);
  }
}

TEST_P(KernelTest, GroupedMatmulsIgnoreRowsThatNoCountCovers) {
  constexpr int64_t kRows = 9, kCounted = 6;
  for (const int64_t experts : {1, 2}) {
    std::vector<TestResult> results[2];
    const TestValue x = Compute({kRows, 5}), dy = Compute({kRows, 7});
    const TestValue w = Compute({experts * 7, 5});
    for (const double other : {0.0, std::nan("")}) {
      TestValue own_x = x, own_dy = dy;
      std::fill(own_x.numbers.begin() + kCounted * 5, own_x.numbers.end(), other);
      std::fill(own_dy.numbers.begin() + kCounted * 7, own_dy.numbers.end(), other);
      const GroupedOps ops = Grouped(experts, {2, 4}, own_x, own_dy, w);
      for (const TestOp* op : {&ops.forward, &ops.grad_input, &ops.grad_weight}) {
        TestResult result = RunOp(*backend_, *op);
        std::vector<double>& numbers = result.outputs[0];
        // Rows of the results that no count covers are unspecified.
        if (op != &ops.grad_weight) numbers.resize(numbers.size() / kRows * kCounted);
        results[std::isnan(other) ? 1 : 0].push_back(std::move(result));
      }
    }
    for (size_t i = 0; i < results[0].size(); ++i)
      EXPECT_EQ(results[0][i].outputs, results[1][i].outputs) << experts << " experts, " << i;
  }
}

TEST_P(KernelTest, DroppedChoicesReadNoRow) {
  constexpr int64_t kRows = 2, kSlots = 3, kHidden = 4;
  TestValue x = Compute({kSlots, kHidden});
  std::fill_n(x.numbers.begin(), kHidden, std::nan(""));
  const TestValue slots{DType::kInt32, {kRows, 2}, {-1, 1, 2, -1}};
  const TestValue weights = Floats({kRows, 2});
  ExpectEqual({OpKind::kPermuteGrad, {}, {x, slots}, {Empty(compute(), {kRows, kHidden})}},
              Loose());
  ExpectEqual({OpKind::kCombine, {}, {x, slots, weights}, {Empty(compute(), {kRows, kHidden})}},
              Loose());
  ExpectEqual({OpKind::kCombineGrad,
               {},
               {Compute({kRows, kHidden}), x, slots, weights},
               {Empty(compute(), {kSlots, kHidden}), Empty(DType::kFloat32, {kRows, 2})}},
              Loose());
}

TEST_P(KernelTest, AllToAllOfAGroupOfOneCopies) {
  const model::RoutedRowsAttributes attributes = {
      {model::GroupOf(model::Axis::kExpert), model::CollectivePurpose::kDispatch}};
  const TestOp counts{OpKind::kAllToAll, attributes, {Ints(6, 0, 9)}, {Empty(DType::kInt32, {6})}};
  const TestResult copied = RunOp(*backend_, counts);
  EXPECT_EQ(copied.outputs[0], copied.inputs[0]);
  for (const int64_t rows : {4, 8, 9}) {  // fewer than the input has, as many, more
    const TestOp op{OpKind::kAllToAll,
                    attributes,
                    {Compute({8, 3}), Counts({1, 3}), Counts({1, 3})},
                    {Empty(compute(), {rows, 3})}};
    const TestResult result = RunOp(*backend_, op);
    for (size_t i = 0; i < 12; ++i) EXPECT_EQ(result.outputs[0][i], result.inputs[0][i]);
  }
}

// In bfloat16 the reference may choose other experts.
TEST_P(KernelTest, ProgramWithExpertsHasTheReferencesLossGradientsAndTotals) {
  if (compute() == DType::kBFloat16) GTEST_SKIP() << "the choices may differ";
  for (const double capacity_factor : {0.0, 1.0}) {
    model::ModelConfig config = model::SmallMixture("AE");
    config.experts.capacity_factor = capacity_factor;
    const model::BuildOptions options = model::StageOptions(config, {}, 3, 11);
    ReferenceBackend reference_backend;
    ProgramRun run(*backend_, options, 5), expected(reference_backend, options, 5);
    for (int m = 0; m < 2; ++m) {
      const Microbatch microbatch = run.MakeMicrobatch(5 + m);
      EXPECT_LE(RelativeError(run.Train(microbatch, m == 0), expected.Train(microbatch, m == 0)),
                2e-6);
      run.Evaluate(microbatch);  // must not change the router's totals
    }
    for (const model::ParameterEntry& entry : run.program().parameters) {
      EXPECT_LE(RelativeError(run.Read(entry.gradient), expected.Read(entry.gradient)), 2e-5)
          << run.program().value(entry.value).name;
    }
    for (const model::ValueId totals : run.program().router_totals)
      EXPECT_LE(RelativeError(run.Read(totals), expected.Read(totals)), 2e-5);
  }
}

TEST_P(KernelTest, ProgramWithExpertsReducesTheLossOfARepeatedMicrobatch) {
  model::BuildOptions options = model::StageOptions(model::SmallMixture("AE"), {}, 3, 11);
  options.compute_dtype = compute();
  ProgramRun run(*backend_, options, 3);
  const Microbatch microbatch = run.MakeMicrobatch(1);
  const double before = run.Train(microbatch, true)[0];
  run.Update(1e-2);
  for (int step = 2; step <= 20; ++step) {
    run.Train(microbatch, true);
    run.Update(1e-2);
  }
  EXPECT_LT(run.Evaluate(microbatch)[0], 0.5 * before);
}

}  // namespace
}  // namespace troupe::kernels
