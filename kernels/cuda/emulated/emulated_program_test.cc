// Compares whole small models on the CUDA backend, on an emulated device, with the float64
// reference.
#include <gtest/gtest.h>

#include "kernels/cuda/emulated/emulated_backend.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/testing/program_run.h"
#include "kernels/testing/testing.h"
#include "model/program/control_word.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

struct ProgramCase {
  model::DType compute;
  bool mixture;
};

class EmulatedProgram : public testing::TestWithParam<ProgramCase> {
 protected:
  static model::BuildOptions Options() {
    const ProgramCase& test = GetParam();
    model::BuildOptions options = model::StageOptions(
        test.mixture ? model::SmallMixture("AE") : model::SmallModel("AD"), {}, 2, 9);
    options.compute_dtype = test.compute;
    return options;
  }
};

TEST_P(EmulatedProgram, HasTheReferencesLossGradientsAndUpdate) {
  const double tolerance = GetParam().compute == model::DType::kFloat32 ? 2e-5 : 0.06;
  TestRandom random;
  const auto seed = static_cast<uint64_t>(random.Integer(1, 1 << 30));
  for (const bool split : {false, true}) {
    EmulatedBackend backend;
    ReferenceBackend reference_backend;
    ProgramRun run(backend, Options(), seed, split);
    ProgramRun expected(reference_backend, Options(), seed, split);
    // The second of two microbatches accumulates onto the results of the first.
    for (int m = 0; m < 2; ++m) {
      const Microbatch microbatch = run.MakeMicrobatch(seed + static_cast<uint64_t>(m));
      const std::vector<double> loss = expected.Train(microbatch, m == 0);
      EXPECT_LE(RelativeError(run.Train(microbatch, m == 0), loss), tolerance / 10);
    }
    for (const model::ParameterEntry& entry : run.program().parameters) {
      EXPECT_LE(RelativeError(run.Read(entry.gradient), expected.Read(entry.gradient)), tolerance)
          << run.program().value(entry.value).name;
    }
    const std::vector<double> control = run.Update(1e-2);
    EXPECT_LE(RelativeError(control, expected.Update(1e-2)), tolerance);
    EXPECT_EQ(control[model::kLaneNonfinite], 0.0);
    for (const model::ParameterEntry& entry : run.program().parameters) {
      double allowed = tolerance;
      for (const model::ValueId state : entry.optimizer_states) {
        EXPECT_LE(RelativeError(run.Read(state), expected.Read(state)), allowed);
        allowed = 2 * tolerance;  // the squares have twice the error
      }
    }
    EXPECT_TRUE(backend.fallbacks().empty());
  }
}

// Experts are tested with float32 only: in bfloat16 the backend may choose other experts than the
// reference.
INSTANTIATE_TEST_SUITE_P(Small, EmulatedProgram,
                         testing::Values(ProgramCase{model::DType::kFloat32, false},
                                         ProgramCase{model::DType::kBFloat16, false},
                                         ProgramCase{model::DType::kFloat32, true}),
                         [](const auto& info) {
                           return std::string(model::Name(info.param.compute)) +
                                  (info.param.mixture ? "_mixture" : "_dense");
                         });

}  // namespace
}  // namespace troupe::kernels
