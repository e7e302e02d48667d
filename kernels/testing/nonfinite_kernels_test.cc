// Tests that a NaN or an infinity among the inputs of an operation with a maximum, a norm, a sum or
// a choice is not lost: where the reference's result is not finite, that of a backend is not
// either. A backend may spread it further, for example to keys that a block hides.
#include "kernels/testing/kernel_test.h"

#include <cmath>
#include <optional>

#include "model/program/control_word.h"

namespace troupe::kernels {
namespace {

using model::DType;
using model::OpKind;

const std::vector<double> kBads = {NAN, INFINITY, -INFINITY};

// Places one bad number at several positions of input `index` of `op`, one after the other, and
// compares the outputs with the reference's, except output `maximum`: a maximum may leave out a NaN
// that a sum of the same numbers keeps.
void ExpectBadNumbersArrive(Backend& backend, const TestOp& op, size_t index,
                            std::optional<size_t> maximum = std::nullopt,
                            const std::vector<double>& bads = kBads) {
  ReferenceBackend reference;
  const auto size = op.inputs[index].numbers.size();
  for (const double bad : bads) {
    for (const size_t at : {size_t{0}, size / 2, size - 1}) {
      TestOp with = op;
      with.inputs[index].numbers[at] = bad;
      const TestResult expected = RunOp(reference, with), actual = RunOp(backend, with);
      for (size_t i = 0; i < op.outputs.size(); ++i) {
        if (i == maximum) continue;
        for (size_t j = 0; j < expected.outputs[i].size(); ++j) {
          ASSERT_TRUE(std::isfinite(expected.outputs[i][j]) || !std::isfinite(actual.outputs[i][j]))
              << model::Name(op.kind) << ": " << bad << " at " << at << " of input " << index
              << " gives " << expected.outputs[i][j] << " as element " << j << " of output " << i
              << ", not " << actual.outputs[i][j];
        }
      }
    }
  }
}

TEST_P(KernelTest, AttentionKeepsWhatIsNotFinite) {
  constexpr int64_t kTokens = 40, kQ = 4, kG = 2, kD = 8, kRows = 2 * kTokens;
  for (const bool by_documents : {false, true}) {
    model::AttentionAttributes attributes{kQ, kG, kD, kTokens, {}};
    if (by_documents) attributes.mask.kind = model::Mask::Kind::kDocument;
    TestOp forward{OpKind::kAttention,
                   attributes,
                   {Compute({kRows, (kQ + 2 * kG) * kD})},
                   {Empty(compute(), {kRows, kQ * kD}), Empty(DType::kFloat32, {kRows, kQ})}};
    const TestValue documents{DType::kInt32, {kRows}, random_.Documents(2, kTokens)};
    if (by_documents) forward.inputs.push_back(documents);
    ExpectBadNumbersArrive(*backend_, forward, 0);
    ReferenceBackend reference;
    const TestResult known = RunOp(reference, forward);
    TestOp gradient{OpKind::kAttentionGrad,
                    attributes,
                    {Compute({kRows, kQ * kD}),
                     forward.inputs[0],
                     {compute(), {kRows, kQ * kD}, known.outputs[0]},
                     {DType::kFloat32, {kRows, kQ}, known.outputs[1]}},
                    {Empty(compute(), {kRows, (kQ + 2 * kG) * kD})}};
    if (by_documents) gradient.inputs.push_back(documents);
    for (const size_t input : {0, 2}) ExpectBadNumbersArrive(*backend_, gradient, input);
    // If a score is infinite, so is the sum that belongs to it; here it would be another one.
    for (const size_t input : {1, 3})
      ExpectBadNumbersArrive(*backend_, gradient, input, std::nullopt, {NAN});
  }
}

TEST_P(KernelTest, NormsKeepWhatIsNotFinite) {
  constexpr int64_t kRows = 5, kHidden = 33;
  const TestValue rows = Compute({kRows, kHidden}), weight = Floats({kHidden});
  const TestOp norm{OpKind::kRmsNorm,
                    model::NormAttributes{1e-5},
                    {rows, weight},
                    {Empty(compute(), {kRows, kHidden}), Empty(DType::kFloat32, {kRows})}};
  for (const size_t input : {0, 1}) ExpectBadNumbersArrive(*backend_, norm, input);
  const TestOp add_norm{OpKind::kAddRmsNorm,
                        model::NormAttributes{1e-5},
                        {rows, Compute({kRows, kHidden}), weight},
                        {Empty(compute(), {kRows, kHidden}), Empty(compute(), {kRows, kHidden}),
                         Empty(DType::kFloat32, {kRows})}};
  for (const size_t input : {0, 1, 2}) ExpectBadNumbersArrive(*backend_, add_norm, input);
  const TestOp gradient{OpKind::kRmsNormGrad,
                        model::NormAttributes{1e-5},
                        {Compute({kRows, kHidden}), rows, weight, Floats({kRows})},
                        {Empty(compute(), {kRows, kHidden}), Floats({kHidden})},
                        true};
  for (const size_t input : {0, 1, 2, 3}) ExpectBadNumbersArrive(*backend_, gradient, input);
}

TEST_P(KernelTest, TheLossKeepsWhatIsNotFinite) {
  constexpr int64_t kRows = 5, kVocabulary = 37;
  const TestValue logits = Compute({kRows, kVocabulary}), weights = Floats({kRows});
  const TestValue targets = Ints(kRows, 0, kVocabulary - 1), max = Floats({kRows});
  TestValue sums = Floats({2, kRows});
  for (double& sum : sums.numbers) sum = 1 + std::abs(sum);
  const auto floats = [](std::vector<int64_t> extents) {
    return Empty(DType::kFloat32, std::move(extents));
  };
  const TestValue gradient = Empty(compute(), {kRows, kVocabulary});
  const auto expect = [&](const TestOp& op, std::initializer_list<size_t> inputs,
                          std::optional<size_t> maximum = std::nullopt) {
    for (const size_t input : inputs) ExpectBadNumbersArrive(*backend_, op, input, maximum);
  };
  expect({OpKind::kSoftmaxStats,
          model::VocabAttributes{},
          {logits, targets},
          {floats({kRows}), floats({2, kRows})}},
         {0}, 0);
  // If a logit is infinite, so is the maximum that belongs to it; here it would be another one.
  const TestOp stats_grad{OpKind::kSoftmaxStatsGrad,
                          model::VocabAttributes{},
                          {logits, targets, max, sums},
                          {gradient}};
  ExpectBadNumbersArrive(*backend_, stats_grad, 0, std::nullopt, {NAN});
  expect(stats_grad, {3});
  for (const double z : {0.0, 0.2}) {
    expect({OpKind::kSoftmaxStatsAndGrad,
            model::LossAttributes{z},
            {logits, targets, weights},
            {gradient, floats({kRows}), floats({2, kRows})}},
           {0, 2}, 1);
  }
  for (const OpKind kind : {OpKind::kSoftmaxRescale, OpKind::kSoftmaxRescaleGrad})
    expect({kind, {}, {sums, max, max}, {floats({2, kRows})}}, {0});
  expect({OpKind::kCrossEntropy,
          model::LossAttributes{},
          {max, sums, weights},
          {{DType::kFloat64, {2}, {3.0, 4.0}}},
          true},
         {0, 1, 2});
  expect({OpKind::kCrossEntropyGrad,
          model::LossAttributes{0.2},
          {sums, weights, max},
          {floats({2, kRows})}},
         {0, 1, 2});
}

TEST_P(KernelTest, RoutersKeepWhatIsNotFinite) {
  if (compute() == DType::kBFloat16) GTEST_SKIP() << "routers have no compute dtype";
  constexpr int64_t kRows = 7, kExperts = 9, kTopK = 3;
  for (const auto score : {model::RouterScore::kSoftmax, model::RouterScore::kSigmoid}) {
    for (const bool normalise : {false, true}) {
      model::RouterAttributes router;
      router.score = score;
      router.normalise = normalise;
      router.experts = kExperts;
      router.top_k = kTopK;
      router.tokens = router.local_tokens = kRows;
      router.z_loss_coef = 0.2;
      const TestValue logits{DType::kFloat32, {kRows, kExperts}, random_.Logits(kRows, kExperts)};
      const TestOp top_k{
          OpKind::kRouterTopK,
          router,
          {logits},
          {Empty(DType::kFloat32, {kRows, kTopK}), Empty(DType::kInt32, {kRows, kTopK}),
           Empty(DType::kInt32, {kRows, kTopK}), Empty(DType::kInt32, {kExperts})}};
      ExpectBadNumbersArrive(*backend_, top_k, 0);
      ReferenceBackend reference;
      const TestValue chosen{DType::kInt32, {kRows, kTopK}, RunOp(reference, top_k).outputs[1]};
      const TestOp gradient{OpKind::kRouterTopKGrad,
                            router,
                            {Floats({kRows, kTopK}), logits, chosen},
                            {Empty(DType::kFloat32, {kRows, kExperts})}};
      for (const size_t input : {0, 1}) ExpectBadNumbersArrive(*backend_, gradient, input);
    }
  }
}

TEST_P(KernelTest, TheControlWordIsMarkedByAnyGradientThatIsNotFinite) {
  if (compute() == DType::kBFloat16) GTEST_SKIP() << "gradients have no compute dtype";
  constexpr size_t kElements = 5000;
  for (const double bad : kBads) {
    for (const size_t at : {size_t{0}, kElements / 2, kElements - 1}) {
      TestOp op{OpKind::kSumOfSquares,
                model::ControlAttributes{2},
                {{DType::kFloat64, {model::kControlLanes}, {}}, Floats({kElements}), Floats({17})},
                {}};
      op.inputs[1].numbers[at] = bad;
      EXPECT_EQ(RunOp(*backend_, op).inputs[0][model::kLaneNonfinite], 3) << bad << " at " << at;
    }
  }
}

}  // namespace
}  // namespace troupe::kernels
