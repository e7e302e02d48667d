// Tests of kDropout on the reference: dropped fraction, dependence on coordinates, derivative.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/random.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/testing/program_run.h"
#include "kernels/testing/testing.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

using model::ContextRows;
using model::DType;
using model::OpKind;

using Numbers = std::vector<double>;

// Some rows of samples, with all their channels.
struct Rows {
  double probability = 0.25;
  uint64_t key = 17;
  int64_t tokens = 12;  // in a whole sample
  ContextRows held = ContextRows::Of(12, 1, 0);
  model::TensorRows own;
  Numbers samples = {3, 0, 3, 1, 3, 2};  // {step, slot} of each sample
  int64_t rows = 36, hidden = 70;
};

Numbers Drop(const Rows& rows, const Numbers& x) {
  ReferenceBackend backend;
  const model::DropoutAttributes attributes = {rows.probability, rows.key, rows.tokens, rows.held,
                                               rows.own};
  const auto samples = static_cast<int64_t>(rows.samples.size()) / 2;
  return RunOp(backend, {OpKind::kDropout,
                         attributes,
                         {{DType::kFloat64, {rows.rows, rows.hidden}, x},
                          {DType::kInt32, {samples, 2}, rows.samples}},
                         {{DType::kFloat64, {rows.rows, rows.hidden}, {}}}})
      .outputs[0];
}

Numbers Ones(const Rows& rows) {
  return Numbers(static_cast<size_t>(rows.rows * rows.hidden), 1.0);
}

double ShareOfZeros(const Numbers& numbers) {
  return static_cast<double>(std::count(numbers.begin(), numbers.end(), 0.0)) /
         static_cast<double>(numbers.size());
}

TEST(Dropout, DropsItsShareAndScalesTheRest) {
  for (const double probability : {0.001, 0.1, 0.5, 0.9}) {
    Rows rows;
    rows.probability = probability;
    rows.key = RandomKey(static_cast<uint64_t>(TestRandom().Integer(1, 1 << 30)), "share");
    rows.hidden = 2000;
    const Numbers dropped = Drop(rows, Ones(rows));
    const double count = static_cast<double>(dropped.size());
    // Five standard deviations for this number of independent draws.
    const double slack = 5 * std::sqrt(probability * (1 - probability) / count);
    EXPECT_NEAR(ShareOfZeros(dropped), probability, slack);
    for (const double y : dropped) ASSERT_TRUE(y == 0 || y == 1 / (1 - probability)) << y;
  }
}

TEST(Dropout, DrawsOfNeighboursAndOfStepsAreIndependent) {
  // Both elements of a pair must be dropped as often as if the draws were independent.
  Rows rows;
  rows.probability = 0.5;
  rows.hidden = 640;
  const Numbers a = Drop(rows, Ones(rows));
  Rows later = rows;
  for (size_t i = 0; i < later.samples.size(); i += 2) later.samples[i] = 4;
  Rows other_key = rows;
  other_key.key = 18;
  const auto both = [&](const Numbers& b, int64_t shift) {
    double count = 0;
    for (size_t i = 0; i + shift < a.size(); ++i) count += a[i] == 0 && b[i + shift] == 0 ? 1 : 0;
    return count / static_cast<double>(static_cast<int64_t>(a.size()) - shift);
  };
  const double slack = 5 * std::sqrt(0.25 * 0.75 / static_cast<double>(a.size()));
  EXPECT_NEAR(both(Drop(later, Ones(rows)), 0), 0.25, slack);
  EXPECT_NEAR(both(Drop(other_key, Ones(rows)), 0), 0.25, slack);
  for (const int64_t shift : {1, 16, 64, 640, 12 * 640})
    EXPECT_NEAR(both(a, shift), 0.25, 2 * slack);
}

TEST(Dropout, KeepsEverythingInAnEvaluation) {
  Rows rows;
  for (size_t i = 0; i < rows.samples.size(); i += 2) rows.samples[i] = 0;
  TestRandom random;
  const Numbers x = random.Normals(rows.rows * rows.hidden);
  EXPECT_EQ(Drop(rows, x), x);
}

TEST(Dropout, IsAFunctionOfGlobalCoordinatesWhateverThisRankHas) {
  const Rows whole;
  TestRandom random;
  const Numbers x = random.Normals(whole.rows * whole.hidden);
  const Numbers dropped = Drop(whole, x);
  const auto row_of = [&](const Numbers& numbers, int64_t row) {
    return Numbers(numbers.begin() + row * whole.hidden,
                   numbers.begin() + (row + 1) * whole.hidden);
  };
  // Partitions: a sample alone; rows split over two tensor ranks; chunks over three context ranks;
  // and the latter's rows over two tensor ranks.
  for (const int ranks : {1, 3}) {
    for (int rank = 0; rank < ranks; ++rank) {
      for (const int64_t first_sample : {0, 1, 2}) {
        for (const int tensor_ranks : {1, 2}) {
          for (int tensor_rank = 0; tensor_rank < tensor_ranks; ++tensor_rank) {
            Rows part = whole;
            part.held = ContextRows::Of(whole.tokens, ranks, rank);
            part.samples.erase(part.samples.begin(), part.samples.begin() + 2 * first_sample);
            const model::Range range = model::BalancedRange((3 - first_sample) * part.held.rows,
                                                            tensor_ranks, tensor_rank);
            part.own.first = range.begin;
            part.rows = range.size();
            Numbers given, due;
            for (int64_t row = range.begin; row < range.end; ++row) {
              const int64_t sample = first_sample + row / part.held.rows;
              const int64_t global =
                  sample * whole.tokens + part.held.Position(row % part.held.rows);
              for (const auto& [from, to] : {std::pair(&x, &given), std::pair(&dropped, &due)}) {
                const Numbers numbers = row_of(*from, global);
                to->insert(to->end(), numbers.begin(), numbers.end());
              }
            }
            EXPECT_EQ(Drop(part, given), due)
                << ranks << " " << first_sample << " " << tensor_ranks;
          }
        }
      }
    }
  }
}

TEST(Dropout, TheGradientOfAProgramIsThatOfItsLossWithTheSameDraws) {
  TestRandom random;
  ReferenceBackend backend;
  model::ModelConfig config = model::SmallModel("AD");
  config.hidden_dropout = 0.3;
  const auto seed = static_cast<uint64_t>(random.Integer(1, 1 << 30));
  model::BuildOptions options = model::StageOptions(config, {}, 2, 7);
  options.seed = seed;
  for (const auto mode : {model::Recomputation::Mode::kNone, model::Recomputation::Mode::kFull}) {
    options.recomputation.mode = mode;
    ProgramRun run(backend, options, seed);
    const Microbatch microbatch = run.MakeMicrobatch(seed);
    Microbatch evaluated = microbatch;
    for (size_t i = 0; i < evaluated.samples.size(); i += 2) evaluated.samples[i] = 0;
    EXPECT_NE(run.Evaluate(microbatch)[0], run.Evaluate(evaluated)[0]) << "nothing was dropped";
    run.Train(microbatch, true);
    for (const model::ParameterEntry& entry : run.program().parameters) {
      auto* parameter = static_cast<double*>(run.executable().Address(entry.value, 0));
      const Numbers gradient = run.Read(entry.gradient);
      const int64_t count = run.program().value(entry.value).elements();
      for (int trial = 0; trial < 3; ++trial) {
        const int64_t i = random.Integer(0, count - 1);
        const double before = parameter[i];
        parameter[i] = before + 1e-4;
        const double above = run.Evaluate(microbatch)[0];
        parameter[i] = before - 1e-4;
        const double below = run.Evaluate(microbatch)[0];
        parameter[i] = before;
        EXPECT_NEAR((above - below) / 2e-4, gradient[i], 1e-5 * (1 + std::abs(gradient[i])))
            << run.program().value(entry.value).name << " element " << i;
      }
    }
  }
}

}  // namespace
}  // namespace troupe::kernels
