// The head's z-loss affects the gradients but not the totals.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/reference/reference_backend.h"
#include "kernels/testing/program_run.h"
#include "kernels/testing/testing.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

using model::OpKind;

using Numbers = std::vector<double>;

// The objective with z-loss, computed from the statistics that the head stores.
TEST(ZLoss, TheGradientOfAProgramIsThatOfItsObjectiveAndTheTotalsAreOfTheLossAlone) {
  TestRandom random;
  ReferenceBackend backend;
  const auto seed = static_cast<uint64_t>(random.Integer(1, 1 << 30));
  model::BuildOptions options = model::StageOptions(model::SmallModel("AD"), {}, 2, 7);
  ProgramRun without(backend, options, seed);
  const Microbatch microbatch = without.MakeMicrobatch(seed);
  options.z_loss_coef = 0.07;
  ProgramRun run(backend, options, seed);
  EXPECT_EQ(run.Train(microbatch, true), without.Train(microbatch, true));
  const model::Op* loss = nullptr;
  for (const model::Op& op : run.program().Ops(0, model::Piece::kForward)) {
    if (op.kind == OpKind::kCrossEntropy) loss = &op;
  }
  ASSERT_NE(loss, nullptr);
  const auto objective = [&] {
    double sum = run.Evaluate(microbatch)[0];
    // The reference stores them in float64.
    const auto* max = static_cast<const double*>(run.executable().Address(loss->inputs[0], 0));
    const auto* sums = static_cast<const double*>(run.executable().Address(loss->inputs[1], 0));
    for (size_t r = 0; r < microbatch.weights.size(); ++r) {
      const double lse = std::log(sums[r]) + max[r];
      sum += options.z_loss_coef * microbatch.weights[r] * lse * lse;
    }
    return sum;
  };
  for (const model::ParameterEntry& entry : run.program().parameters) {
    auto* parameter = static_cast<double*>(run.executable().Address(entry.value, 0));
    const Numbers gradient = run.Read(entry.gradient);
    const int64_t count = run.program().value(entry.value).elements();
    for (int trial = 0; trial < 4; ++trial) {
      const int64_t i = random.Integer(0, count - 1);
      const double before = parameter[i];
      parameter[i] = before + 1e-4;
      const double above = objective();
      parameter[i] = before - 1e-4;
      const double below = objective();
      parameter[i] = before;
      EXPECT_NEAR((above - below) / 2e-4, gradient[i], 1e-5 * (1 + std::abs(gradient[i])))
          << run.program().value(entry.value).name << " element " << i;
    }
  }
}

}  // namespace
}  // namespace troupe::kernels
