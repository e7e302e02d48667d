// Tests of whole small models on the CPU, in addition to those for every backend
// (kernels/testing/program_kernels_test.cc).
#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/testing/program_run.h"
#include "kernels/testing/testing.h"
#include "model/program/control_word.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

model::BuildOptions SmallProgramOptions(model::DType compute) {
  model::BuildOptions options = model::StageOptions(model::SmallModel("ADAD"), {}, 3, 11);
  options.compute_dtype = compute;
  return options;
}

TEST(Program, OnTheBestLevelsNeedsNoFallBack) {
  for (const model::DType compute : {model::DType::kFloat32, model::DType::kBFloat16}) {
    auto backend = CpuBackend::Make({2, std::nullopt}).value();
    ProgramRun run(*backend, SmallProgramOptions(compute), 3);
    run.Train(run.MakeMicrobatch(1), true);
    EXPECT_TRUE(backend->fallbacks().empty() || cpu::HighestLevel() < cpu::Level::kAvx512);
  }
}

// Two microbatches of a mixture model, in float32; in bfloat16 the reference may choose other
// experts.
TEST(ProgramWithExperts, HasTheReferencesLossGradientsAndTotals) {
  for (const bool split : {false, true}) {
    for (const double capacity_factor : {0.0, 1.0}) {
      model::ModelConfig config = model::SmallMixture("AEAE");
      config.experts.capacity_factor = capacity_factor;
      const model::BuildOptions options = model::StageOptions(config, {}, 3, 11);
      ReferenceBackend reference_backend;
      auto backend = CpuBackend::Make({2, std::nullopt}).value();
      ProgramRun run(*backend, options, 5, split);
      ProgramRun expected(reference_backend, options, 5, split);
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
      for (const model::ValueId totals : run.program().router_totals) {
        const std::vector<double> lanes = run.Read(totals);
        EXPECT_LE(RelativeError(lanes, expected.Read(totals)), 2e-5);
        double routed = 0;
        for (size_t e = model::kRouterLanes; e < lanes.size(); ++e) routed += lanes[e];
        EXPECT_EQ(routed, 2 * 2 * 3 * 11);
      }
    }
  }
}

TEST(ProgramWithExperts, LearnsInBfloat16) {
  model::BuildOptions options = model::StageOptions(model::SmallMixture("AEAE"), {}, 3, 11);
  options.compute_dtype = model::DType::kBFloat16;
  auto backend = CpuBackend::Make({2, std::nullopt}).value();
  ProgramRun run(*backend, options, 3);
  const Microbatch microbatch = run.MakeMicrobatch(1);
  const double before = run.Train(microbatch, true)[0];
  run.Update(1e-2);
  for (int step = 2; step <= 20; ++step) {
    run.Train(microbatch, true);
    run.Update(1e-2);
  }
  EXPECT_LT(run.Evaluate(microbatch)[0], 0.5 * before);
}

TEST(PackedRows, TrainAsTheirDocumentsWouldAsSamples) {
  auto backend = CpuBackend::Make({2, std::nullopt}).value();
  model::BuildOptions options = SmallProgramOptions(model::DType::kFloat32);
  ProgramRun samples(*backend, options, 3);  // three samples of 11 tokens
  options.document_mask = true;
  options.sequence_length = 33;
  options.micro_batch_size = 1;
  ProgramRun packed(*backend, options, 3);
  Microbatch microbatch = samples.MakeMicrobatch(1);
  const std::vector<double> loss = samples.Train(microbatch, true);
  for (int64_t r = 0; r < 33; ++r) {
    const int64_t first = r / 11 * 11;  // the row with which its document begins
    microbatch.documents[static_cast<size_t>(r)] = static_cast<double>(first);
  }
  EXPECT_LE(RelativeError(packed.Train(microbatch, true), loss), 1e-6);
  for (size_t p = 0; p < packed.program().parameters.size(); ++p) {
    const model::ParameterEntry& entry = packed.program().parameters[p];
    EXPECT_LE(RelativeError(packed.Read(entry.gradient),
                            samples.Read(samples.program().parameters[p].gradient)),
              1e-5)
        << packed.program().value(entry.value).name;
  }
  // One document instead of three changes the loss.
  microbatch.documents.assign(33, 0.0);
  EXPECT_GT(RelativeError(packed.Evaluate(microbatch), loss), 1e-5);
}

TEST(ProgramUpdate, LeavesEverythingAloneWhereAGradientIsNotFinite) {
  auto backend = CpuBackend::Make({2, std::nullopt}).value();
  ProgramRun run(*backend, SmallProgramOptions(model::DType::kFloat32), 3);
  run.Train(run.MakeMicrobatch(1), true);
  const model::ParameterEntry& entry = run.program().parameters.back();
  std::vector<double> gradient = run.Read(entry.gradient);
  gradient[gradient.size() / 2] = NAN;
  run.Write(entry.gradient, gradient);
  const std::vector<double> before = run.Read(entry.value);
  const std::vector<double> control = run.Update(1e-2);
  EXPECT_EQ(control[model::kLaneNonfinite], 1.0);  // 1 + rank 0
  EXPECT_EQ(run.Read(entry.value), before);
  EXPECT_EQ(run.Read(entry.optimizer_states[0]), std::vector<double>(before.size(), 0.0));
}

}  // namespace
}  // namespace troupe::kernels
