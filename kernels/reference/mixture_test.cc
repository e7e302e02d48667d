// Derivatives and formulas of routers, permutations and experts.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "kernels/reference/gradient_test.h"
#include "kernels/testing/program_run.h"
#include "model/program/control_word.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

using model::DType;
using model::OpKind;

model::RouterAttributes Router(int64_t experts, int64_t top_k, int64_t tokens) {
  model::RouterAttributes router;
  router.experts = experts;
  router.top_k = top_k;
  router.tokens = tokens;
  router.local_tokens = tokens;
  router.compute = DType::kFloat64;
  return router;
}

// All combinations of router attributes.
std::vector<model::RouterAttributes> Routers() {
  std::vector<model::RouterAttributes> routers;
  for (const auto score : {model::RouterScore::kSoftmax, model::RouterScore::kSigmoid}) {
    for (const bool normalise : {false, true}) {
      for (const int64_t top_k : {1, 2, 5}) {
        model::RouterAttributes router = Router(5, top_k, 3);
        router.score = score;
        router.normalise = normalise;
        router.capacity = normalise ? 2 : 0;
        router.aux_loss_coef = 0.3;
        router.z_loss_coef = normalise ? 0 : 0.2;
        routers.push_back(router);
      }
    }
  }
  return routers;
}

constexpr int64_t kTokens = 6;

TestOp TopK(const model::RouterAttributes& router, std::vector<double> logits) {
  return {OpKind::kRouterTopK,
          router,
          {Doubles({kTokens, router.experts}, std::move(logits))},
          {Empty({kTokens, router.top_k}), Empty({kTokens, router.top_k}),
           Empty({kTokens, router.top_k}), Empty({router.experts})}};
}

TEST_F(ReferenceGradient, OfRouterTopK) {
  for (const model::RouterAttributes& router : Routers()) {
    const TestOp op = TopK(router, random_.Logits(kTokens, router.experts));
    const std::vector<double> dy = random_.Normals(kTokens * router.top_k);
    const TestResult gradient = Run({OpKind::kRouterTopKGrad,
                                     router,
                                     {Doubles({kTokens, router.top_k}, dy), op.inputs[0],
                                      Doubles({kTokens, router.top_k}, Run(op).outputs[1])},
                                     {Empty({kTokens, router.experts})}});
    const std::vector<double> differences = OfInput(op, 0, dy);
    for (size_t i = 0; i < differences.size(); ++i)
      EXPECT_NEAR(gradient.outputs[0][i], differences[i], 1e-8);
  }
}

TEST_F(ReferenceGradient, OfRouterLoss) {
  for (const model::RouterAttributes& router : Routers()) {
    const TestResult choice = Run(TopK(router, random_.Logits(kTokens, router.experts)));
    const TestValue logits = Doubles({kTokens, router.experts}, choice.inputs[0]);
    const TestOp load{OpKind::kRouterLoad,
                      router,
                      {Doubles({kTokens, router.top_k}, choice.outputs[1]),
                       Doubles({kTokens}, {1, 0, 0.5, 2, 1, 1})},
                      {Empty({2, router.experts + 1})}};
    const TestValue whole = Doubles({2, router.experts + 1}, Run(load).outputs[0]);
    EXPECT_EQ(whole.numbers[router.experts], 1.5);
    EXPECT_EQ(whole.numbers[2 * router.experts + 1], 4);
    const int64_t lanes = model::kRouterLanes + router.experts;
    const TestOp op{OpKind::kRouterLoss,
                    router,
                    {logits, whole, whole, Doubles({router.experts}, choice.outputs[3])},
                    {Empty({lanes})}};
    std::vector<double> dy(lanes, 0.0);
    dy[0] = dy[1] = 1;
    const TestResult gradient =
        Run({OpKind::kRouterLossGrad, router, {logits, whole}, {Empty({kTokens, router.experts})}});
    // If every expert is chosen, the auxiliary loss is constant.
    const std::vector<double> differences = OfInput(op, 0, dy);
    for (size_t i = 0; i < differences.size(); ++i)
      EXPECT_NEAR(gradient.outputs[0][i], differences[i], 1e-8);
  }
}

TEST(RouterLoss, IsTheFormulaOfEachRowTimesItsWeight) {
  ReferenceBackend backend;
  model::RouterAttributes router = Router(2, 1, 2);
  router.aux_loss_coef = 0.5;
  router.z_loss_coef = 0.25;
  // One row of two tokens with p = (3/4, 1/4) and (1/2, 1/2), both routed to expert 0, one dropped.
  const TestResult result =
      RunOp(backend, {OpKind::kRouterLoss,
                      router,
                      {Doubles({2, 2}, {std::log(3.0), 0, 0, 0}), Doubles({1, 3}, {2, 0, 3}),
                       Doubles({1, 3}, {2, 0, 3}), Doubles({2}, {1, 0})},
                      {Empty({5})}});
  const double aux = 0.5 * 2 / (1 * 4.0) * ((0.75 + 0.5) * 2);
  const double z = 0.25 * (std::log(4.0) * std::log(4.0) + std::log(2.0) * std::log(2.0)) / 2;
  EXPECT_NEAR(result.outputs[0][0], 3 * aux, 1e-12);
  EXPECT_NEAR(result.outputs[0][1], 3 * z, 1e-12);
  EXPECT_EQ(result.outputs[0][2], 1);
  EXPECT_EQ(result.outputs[0][3], 2);
  EXPECT_EQ(result.outputs[0][4], 0);
}

// Two samples whose rows are split over three ranks, as in sequence parallelism. Given the load of
// whole samples, the losses of the ranks must add up to that of a single rank.
TEST(RouterLoss, OfPartsOfSamplesAddsUpToThatOfTheWhole) {
  ReferenceBackend backend;
  TestRandom random;
  for (model::RouterAttributes router : Routers()) {
    router.capacity = 0;
    const int64_t experts = router.experts, k = router.top_k, lanes = experts + 1;
    const std::vector<double> logits = random.Logits(kTokens, experts);
    const std::vector<double> weights = {1, 0, 0.5, 2, 1, 1};
    const auto rows = [](const std::vector<double>& all, int64_t begin, int64_t end, int64_t row) {
      return std::vector<double>(all.begin() + begin * row, all.begin() + end * row);
    };
    const std::vector<double> chosen = RunOp(backend, TopK(router, logits)).outputs[1];
    const auto load_of = [&](int64_t begin, int64_t end) {
      router.first_row = begin;
      return RunOp(backend, {OpKind::kRouterLoad,
                             router,
                             {Doubles({end - begin, k}, rows(chosen, begin, end, k)),
                              Doubles({kTokens}, weights)},
                             {Empty({2, lanes})}})
          .outputs[0];
    };
    const std::vector<double> whole = load_of(0, kTokens);
    const auto loss_of = [&](int64_t begin, int64_t end) {
      const TestValue own = Doubles({2, lanes}, load_of(begin, end));
      std::vector<double> kept(experts, 0.0);
      for (int64_t i = begin * k; i < end * k; ++i) kept[static_cast<int64_t>(chosen[i])] += 1;
      const TestValue part = Doubles({end - begin, experts}, rows(logits, begin, end, experts));
      std::vector<double> numbers =
          RunOp(backend, {OpKind::kRouterLoss,
                          router,
                          {part, own, Doubles({2, lanes}, whole), Doubles({experts}, kept)},
                          {Empty({model::kRouterLanes + experts})}})
              .outputs[0];
      const std::vector<double> gradient = RunOp(backend, {OpKind::kRouterLossGrad,
                                                           router,
                                                           {part, Doubles({2, lanes}, whole)},
                                                           {Empty({end - begin, experts})}})
                                               .outputs[0];
      return std::pair(std::move(numbers), gradient);
    };
    const auto [totals, gradient] = loss_of(0, kTokens);
    std::vector<double> sums(totals.size(), 0.0), gradients;
    for (const auto& [begin, end] : {std::pair(0, 2), std::pair(2, 5), std::pair(5, 6)}) {
      const auto [part, of_rows] = loss_of(begin, end);
      for (size_t i = 0; i < part.size(); ++i) sums[i] += part[i];
      gradients.insert(gradients.end(), of_rows.begin(), of_rows.end());
    }
    EXPECT_LE(RelativeError(sums, totals), 1e-12);
    EXPECT_LE(RelativeError(gradients, gradient), 1e-12);
  }
}

TEST(RouterTopK, TiesGoToTheLowestExpertAndABiasMovesTheChoiceAlone) {
  ReferenceBackend backend;
  model::RouterAttributes router = Router(4, 2, 1);
  router.normalise = false;
  TestOp op{OpKind::kRouterTopK,
            router,
            {Doubles({1, 4}, {0, 1, 1, 1})},
            {Empty({1, 2}), Empty({1, 2}), Empty({1, 2}), Empty({4})}};
  EXPECT_EQ(RunOp(backend, op).outputs[1], (std::vector<double>{1, 2}));
  op.inputs.push_back(Doubles({4}, {1, 0, 0, 0}));
  const TestResult biased = RunOp(backend, op);
  EXPECT_EQ(biased.outputs[1], (std::vector<double>{0, 1}));
  EXPECT_NEAR(biased.outputs[0][0], 1 / (1 + 3 * std::exp(1.0)), 1e-12);
}

TEST(RouterBias, MovesByTheRateTowardsTheMeanUnlessTheStepIsNotFinite) {
  ReferenceBackend backend;
  std::vector<double> control(model::kControlLanes, 0.0);
  control[model::kLaneWeight] = 1;
  // First the lanes of losses and drops, then 2, 5 and 8 choices with a mean of 5.
  TestOp op{OpKind::kRouterBias,
            model::RouterBiasAttributes{0.25},
            {Doubles({model::kControlLanes}, control), Doubles({6}, {100, 200, 300, 2, 5, 8}),
             Doubles({3}, {0.5, -1, 2})},
            {}};
  EXPECT_EQ(RunOp(backend, op).inputs[2], (std::vector<double>{0.75, -1, 1.75}));
  op.inputs[0].numbers[model::kLaneNonfinite] = 1;
  EXPECT_EQ(RunOp(backend, op).inputs[2], op.inputs[2].numbers);
}

TEST_F(ReferenceGradient, OfPermuteAndCombineWithDroppedChoices) {
  for (const model::RouterAttributes& router : Routers()) {
    const int64_t hidden = 3, choices = kTokens * router.top_k;
    const TestResult choice = Run(TopK(router, random_.Logits(kTokens, router.experts)));
    const TestValue slots{DType::kInt32, {kTokens, router.top_k}, choice.outputs[2]};
    const TestOp permute{OpKind::kPermute,
                         router,
                         {Doubles({kTokens, hidden}, random_.Normals(kTokens * hidden)), slots},
                         {Empty({choices, hidden})}};
    std::vector<double> dy = random_.Normals(choices * hidden);
    const TestResult dx = Run({OpKind::kPermuteGrad,
                               router,
                               {Doubles({choices, hidden}, dy), slots},
                               {Empty({kTokens, hidden})}});
    EXPECT_LE(RelativeError(dx.outputs[0], OfInput(permute, 0, dy)), kTolerance);
    const TestOp combine{OpKind::kCombine,
                         router,
                         {Doubles({choices, hidden}, random_.Normals(choices * hidden)), slots,
                          Doubles({kTokens, router.top_k}, random_.Normals(choices))},
                         {Empty({kTokens, hidden})}};
    dy = random_.Normals(kTokens * hidden);
    const TestResult gradient =
        Run({OpKind::kCombineGrad,
             router,
             {Doubles({kTokens, hidden}, dy), combine.inputs[0], slots, combine.inputs[2]},
             {Empty({choices, hidden}), Empty({kTokens, router.top_k})}});
    EXPECT_LE(RelativeError(gradient.outputs[0], OfInput(combine, 0, dy)), kTolerance);
    EXPECT_LE(RelativeError(gradient.outputs[1], OfInput(combine, 2, dy)), kTolerance);
  }
}

TEST_F(ReferenceGradient, OfGroupedMatmulWithExpertsWithoutRows) {
  // Two senders and three experts: one expert has no rows, one has rows of one sender only; the
  // last row of the buffer is unused.
  const model::GroupedAttributes grouped{6, 3, 7, false};
  const TestValue counts{DType::kInt32, {6}, {2, 0, 3, 1, 0, 0}};
  const int64_t rows = 7, k = 4, n = 3;
  const TestOp op{OpKind::kGroupedMatmul,
                  grouped,
                  {Doubles({rows, k}, random_.Normals(rows * k)),
                   Doubles({3 * n, k}, random_.Normals(3 * n * k)), counts},
                  {Empty({rows, n})}};
  const std::vector<double> dy = random_.Normals(rows * n);
  const TestValue dy_value = Doubles({rows, n}, dy);
  const TestResult dx = Run({OpKind::kGroupedMatmulGradInput,
                             grouped,
                             {dy_value, op.inputs[1], counts},
                             {Empty({rows, k})}});
  const TestResult dw = Run({OpKind::kGroupedMatmulGradWeight,
                             grouped,
                             {dy_value, op.inputs[0], counts},
                             {Empty({3 * n, k})}});
  EXPECT_LE(RelativeError(dx.outputs[0], OfInput(op, 0, dy)), kTolerance);
  EXPECT_LE(RelativeError(dw.outputs[0], OfInput(op, 1, dy)), kTolerance);
  for (int64_t i = n * k; i < 2 * n * k; ++i) EXPECT_EQ(dw.outputs[0][i], 0);
}

// The chosen experts and the slots of all tokens. The objective is smooth as long as they do not
// change.
std::vector<std::vector<double>> ChoicesOf(ProgramRun& run) {
  std::vector<std::vector<double>> choices;
  for (const model::Op& op : run.program().Ops(0, model::Piece::kForward)) {
    if (op.kind != OpKind::kRouterTopK) continue;
    choices.push_back(run.Read(op.outputs[1]));
    choices.push_back(run.Read(op.outputs[2]));
  }
  return choices;
}

// The objective with auxiliary losses, through routers, experts, shared experts and norms.
TEST_F(ReferenceGradient, OfAProgramWithExpertsIsThatOfItsObjective) {
  for (const bool sigmoid : {false, true}) {
    for (const double capacity_factor : {0.0, 1.0}) {
      model::ModelConfig config = model::SmallMixture("AEAE");
      config.experts.score = sigmoid ? model::RouterScore::kSigmoid : model::RouterScore::kSoftmax;
      config.experts.capacity_factor = capacity_factor;
      const uint64_t seed = static_cast<uint64_t>(random_.Integer(1, 1 << 30));
      ProgramRun run(backend_, model::StageOptions(config, {}, 2, 7), seed);
      // Returns the sum of loss and auxiliary losses, and the number of dropped choices.
      const auto train = [&](const Microbatch& microbatch) {
        double sum = run.Train(microbatch, true)[0], dropped = 0;
        for (const model::ValueId totals : run.program().router_totals) {
          const std::vector<double> lanes = run.Read(totals);
          EXPECT_GT(lanes[0], 0);
          EXPECT_GT(lanes[1], 0);
          sum += lanes[0] + lanes[1];
          dropped += lanes[2];
        }
        return std::pair(sum, dropped);
      };
      // With a capacity, uses a microbatch in which a choice is dropped; most are of this kind, and
      // a balanced one would test less.
      Microbatch microbatch = run.MakeMicrobatch(seed);
      for (uint64_t draw = 1; capacity_factor > 0 && train(microbatch).second == 0; ++draw) {
        ASSERT_LT(draw, 100) << "no choice is ever dropped";
        microbatch = run.MakeMicrobatch(seed + draw);
      }
      EXPECT_EQ(train(microbatch).second > 0, capacity_factor > 0);
      const auto choices = ChoicesOf(run);
      std::map<model::ValueId, std::vector<double>> gradients;
      for (const model::ParameterEntry& entry : run.program().parameters) {
        gradients[entry.value] = run.Read(entry.gradient);
      }
      int compared = 0, moved = 0;
      for (const model::ParameterEntry& entry : run.program().parameters) {
        auto* parameter = static_cast<double*>(run.executable().Address(entry.value, 0));
        const int64_t count = run.program().value(entry.value).elements();
        for (int trial = 0; trial < 3; ++trial) {
          const int64_t i = random_.Integer(0, count - 1);
          const double before = parameter[i], expected = gradients[entry.value][i];
          bool stay = true;
          const auto objective = [&](double at) {
            parameter[i] = at;
            const double sum = train(microbatch).first;
            stay &= ChoicesOf(run) == choices;
            return sum;
          };
          const double above = objective(before + 1e-6), below = objective(before - 1e-6);
          parameter[i] = before;
          // There is no derivative where a token changes its expert or a choice reaches the
          // capacity.
          ++(stay ? compared : moved);
          if (!stay) continue;
          EXPECT_NEAR((above - below) / 2e-6, expected, 1e-5 * (1 + std::abs(expected)))
              << run.program().value(entry.value).name << " element " << i;
        }
      }
      EXPECT_LT(10 * moved, compared);
    }
  }
}

}  // namespace
}  // namespace troupe::kernels
