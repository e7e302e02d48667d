// Tests of mixture-of-experts routers and of the movement of routed rows.
#include "kernels/testing/kernel_test.h"

#include <cmath>
#include <limits>
#include <utility>

#include "model/program/control_word.h"

namespace troupe::kernels {
namespace {

using model::DType;
using model::OpKind;

// A router of rows [4, 25) of the 35 rows of five samples; this rank holds 7 of each sample's 14
// tokens. The variants 0 to 3 differ in scores, normalisation and capacity.
model::RouterAttributes RouterOfVariant(int64_t experts, int64_t top_k, int variant) {
  model::RouterAttributes router;
  router.score = variant % 2 ? model::RouterScore::kSigmoid : model::RouterScore::kSoftmax;
  router.normalise = variant >= 2;
  router.experts = experts;
  router.top_k = top_k;
  router.tokens = 14;
  router.local_tokens = 7;
  router.first_row = 4;
  router.capacity = variant == 3 ? 2 : 0;
  router.aux_loss_coef = 0.3;
  router.z_loss_coef = 0.2;
  return router;
}

TEST_P(KernelTest, RoutersMatch) {
  if (compute() == DType::kBFloat16) GTEST_SKIP() << "routers have no compute dtype";
  for (const auto& [experts, top_k] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {4, 2}, {9, 3}, {16, 16}}) {
    for (const int variant : {0, 1, 2, 3}) {
      const model::RouterAttributes router = RouterOfVariant(experts, top_k, variant);
      const int64_t rows = 21, samples = 5, lanes = experts + 1;
      const TestValue logits{DType::kFloat32, {rows, experts}, random_.Logits(rows, experts)};
      TestOp op{OpKind::kRouterTopK,
                router,
                {logits},
                {Empty(DType::kFloat32, {rows, top_k}), Empty(DType::kInt32, {rows, top_k}),
                 Empty(DType::kInt32, {rows, top_k}), Empty(DType::kInt32, {experts})}};
      ExpectEqual(op, 16);
      ReferenceBackend reference;
      const TestResult choice = RunOp(reference, op);
      for (int i : {1, 2, 3}) {
        EXPECT_EQ(RunOp(*backend_, op).outputs[i], choice.outputs[i]) << "output " << i;
      }
      const TestValue chosen{DType::kInt32, {rows, top_k}, choice.outputs[1]};
      ExpectEqual({OpKind::kRouterTopKGrad,
                   router,
                   {Floats({rows, top_k}), logits, chosen},
                   {Empty(DType::kFloat32, {rows, experts})}},
                  experts == 1 ? INFINITY : 256);
      // Integer weights make the sums exact.
      const TestOp load{OpKind::kRouterLoad,
                        router,
                        {chosen, {DType::kFloat32, {35}, random_.Integers(35, 0, 3)}},
                        {Empty(DType::kFloat32, {samples, lanes})}};
      const TestValue own{DType::kFloat32, {samples, lanes}, RunOp(reference, load).outputs[0]};
      EXPECT_EQ(RunOp(*backend_, load).outputs[0], own.numbers);
      // This rank's experts start at the second one; some choices were dropped.
      model::RouterAttributes of_rank = router;
      of_rank.first_expert = experts > 1 ? 1 : 0;
      of_rank.local_experts = experts > 1 ? experts - 1 : 1;
      const TestOp slots{
          OpKind::kRouterSlots,
          of_rank,
          {chosen, {DType::kInt32, {rows, top_k}, choice.outputs[2]}},
          {Empty(DType::kInt32, {rows, top_k}), Empty(DType::kInt32, {of_rank.local_experts})}};
      const TestResult own_slots = RunOp(reference, slots);
      EXPECT_EQ(RunOp(*backend_, slots).outputs, own_slots.outputs);
      EXPECT_EQ(own_slots.outputs[1],
                std::vector<double>(choice.outputs[3].begin() + of_rank.first_expert,
                                    choice.outputs[3].end()));
      TestValue whole = own;
      for (double& number : whole.numbers) number += static_cast<double>(random_.Integer(0, 9));
      for (const bool first : {false, true}) {
        ExpectEqual({OpKind::kRouterLoss,
                     router,
                     {logits, own, whole, {DType::kInt32, {experts}, choice.outputs[3]}},
                     {Random64({model::kRouterLanes + experts})},
                     first},
                    64, {.first_microbatch = true});
      }
      ExpectEqual({OpKind::kRouterLossGrad,
                   router,
                   {logits, whole},
                   {Empty(DType::kFloat32, {rows, experts})}},
                  256);
      op.inputs.push_back({DType::kFloat32, {experts}, random_.Normals(experts)});
      EXPECT_EQ(RunOp(*backend_, op).outputs[1], RunOp(reference, op).outputs[1]) << "with a bias";
    }
  }
}

TEST_P(KernelTest, RoutersOfManyRowsMatch) {
  if (compute() == DType::kBFloat16) GTEST_SKIP() << "routers have no compute dtype";
  constexpr int64_t kRows = 2500, kExperts = 33, kTopK = 4, kSamples = 2;
  ReferenceBackend reference;
  for (const int64_t capacity : {0, 290}) {
    model::RouterAttributes router;
    router.experts = kExperts;
    router.top_k = kTopK;
    router.tokens = router.local_tokens = 1300;
    router.first_row = 50;
    router.capacity = capacity;
    router.first_expert = 1;
    router.local_experts = 31;
    router.aux_loss_coef = 0.3;
    router.z_loss_coef = 0.2;
    const TestValue logits{DType::kFloat32, {kRows, kExperts}, random_.Logits(kRows, kExperts)};
    const TestOp top_k{
        OpKind::kRouterTopK,
        router,
        {logits},
        {Empty(DType::kFloat32, {kRows, kTopK}), Empty(DType::kInt32, {kRows, kTopK}),
         Empty(DType::kInt32, {kRows, kTopK}), Empty(DType::kInt32, {kExperts})}};
    const TestResult choice = RunOp(*backend_, top_k), expected = RunOp(reference, top_k);
    for (const int i : {1, 2, 3}) {
      EXPECT_EQ(choice.outputs[i], expected.outputs[i]) << "output " << i;
    }
    const TestValue chosen{DType::kInt32, {kRows, kTopK}, expected.outputs[1]};
    const TestOp slots{OpKind::kRouterSlots,
                       router,
                       {chosen, {DType::kInt32, {kRows, kTopK}, expected.outputs[2]}},
                       {Empty(DType::kInt32, {kRows, kTopK}), Empty(DType::kInt32, {31})}};
    EXPECT_EQ(RunOp(*backend_, slots).outputs, RunOp(reference, slots).outputs);
    const TestOp load{OpKind::kRouterLoad,
                      router,
                      {chosen, {DType::kFloat32, {2600}, random_.Integers(2600, 0, 3)}},
                      {Empty(DType::kFloat32, {kSamples, kExperts + 1})}};
    const TestResult loads = RunOp(reference, load);
    EXPECT_EQ(RunOp(*backend_, load).outputs, loads.outputs);
    const TestValue whole{DType::kFloat32, {kSamples, kExperts + 1}, loads.outputs[0]};
    ExpectEqual({OpKind::kRouterLoss,
                 router,
                 {logits, whole, whole, {DType::kInt32, {kExperts}, expected.outputs[3]}},
                 {Random64({model::kRouterLanes + kExperts})}},
                64);
  }
}

TEST_P(KernelTest, RouterBiasesMatchAndAreTheFormula) {
  if (compute() == DType::kBFloat16) GTEST_SKIP() << "routers have no compute dtype";
  constexpr double kRate = 0x1.0p-7;  // exact in both dtypes
  ReferenceBackend reference;
  for (const int64_t experts : {1, 3, 64, 129}) {
    // A rank's tag, and a sum of squares that is infinite although all its terms are finite.
    for (const auto& [lane, number] :
         {std::pair(model::kLaneNonfinite, 0.0), std::pair(model::kLaneNonfinite, 3.0),
          std::pair(model::kLaneSumOfSquares, std::numeric_limits<double>::infinity())}) {
      std::vector<double> control(model::kControlLanes, 0.0), totals = random_.Normals(3);
      control[model::kLaneWeight] = 2;
      control[static_cast<size_t>(lane)] = number;
      const std::vector<double> routed = random_.Integers(experts, 0, 4);
      totals.insert(totals.end(), routed.begin(), routed.end());
      // Multiples of the rate, so that adding the rate is exact.
      std::vector<double> bias = random_.Integers(experts, -50, 50), expected;
      double mean = 0;
      for (const double count : routed) mean += count;
      mean /= static_cast<double>(experts);
      for (int64_t e = 0; e < experts; ++e) {
        bias[e] *= kRate;
        const double sign = mean > routed[e] ? 1 : mean < routed[e] ? -1 : 0;
        expected.push_back(number != 0 ? bias[e] : bias[e] + kRate * sign);
      }
      const TestOp op{OpKind::kRouterBias,
                      model::RouterBiasAttributes{kRate},
                      {{DType::kFloat64, {model::kControlLanes}, control},
                       {DType::kFloat64, {model::kRouterLanes + experts}, totals},
                       {DType::kFloat32, {experts}, bias}},
                      {}};
      EXPECT_EQ(RunOp(*backend_, op).inputs[2], expected) << experts << " experts";
      EXPECT_EQ(RunOp(reference, op).inputs[2], expected) << experts << " experts";
    }
  }
}

TEST_P(KernelTest, RoutedRowsOfAGroupOfOneAreCopiedAsFarAsCountsState) {
  for (const OpKind kind : {OpKind::kGatherRouted, OpKind::kScatterRouted}) {
    const model::RoutedRowsAttributes attributes = {
        {model::GroupOf(model::Axis::kTensor), model::CollectivePurpose::kSequence}};
    TestOp op{kind,
              attributes,
              {Compute({9, 5}), {DType::kInt32, {4}, {2, 0, 3, 1}}},
              {Empty(compute(), {9, 5})}};
    op.outputs[0].numbers = random_.Integers(45, 0, 9);
    const TestResult result = RunOp(*backend_, op);
    for (size_t i = 0; i < 45; ++i) {
      EXPECT_EQ(result.outputs[0][i], i < 30 ? result.inputs[0][i] : op.outputs[0].numbers[i])
          << "element " << i << " of " << model::Name(kind);
    }
  }
}

}  // namespace
}  // namespace troupe::kernels
