// Whole small models: loss, gradients and update, step after step.
#include "kernels/testing/kernel_test.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/sample_schema.h"
#include "kernels/testing/program_run.h"
#include "model/program/control_word.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

using model::DType;

model::BuildOptions SmallOptions(DType compute, bool tied = false) {
  model::ModelConfig config = model::SmallModel("ADAD");
  config.tie_word_embeddings = tied;
  model::BuildOptions options = model::StageOptions(config, {}, 3, 11);
  options.compute_dtype = compute;
  return options;
}

TEST_P(KernelTest, ProgramHasTheReferencesLossGradientsAndUpdate) {
  const auto seed = static_cast<uint64_t>(random_.Integer(1, 1 << 30));
  ReferenceBackend reference_backend;
  const double tolerance = compute() == DType::kFloat32 ? 2e-5 : 0.06;
  for (const bool tied : {false, true}) {
    for (const bool split : {false, true}) {
      ProgramRun run(*backend_, SmallOptions(compute(), tied), seed, split);
      ProgramRun expected(reference_backend, SmallOptions(compute(), tied), seed, split);
      // The second of two microbatches accumulates onto the results of the first.
      for (int m = 0; m < 2; ++m) {
        const Microbatch microbatch = run.MakeMicrobatch(seed + m);
        const std::vector<double> loss = expected.Train(microbatch, m == 0);
        EXPECT_LE(RelativeError(run.Train(microbatch, m == 0), loss), tolerance / 10);
        EXPECT_LE(RelativeError(run.Evaluate(microbatch), loss), tolerance / 10);
        expected.Evaluate(microbatch);
      }
      for (const model::ParameterEntry& entry : run.program().parameters) {
        EXPECT_LE(RelativeError(run.Read(entry.gradient), expected.Read(entry.gradient)), tolerance)
            << run.program().value(entry.value).name;
      }
      const std::vector<double> control = run.Update(1e-2);
      EXPECT_LE(RelativeError(control, expected.Update(1e-2)), tolerance);
      EXPECT_EQ(control[model::kLaneNonfinite], 0.0);
      for (const model::ParameterEntry& entry : run.program().parameters) {
        // The first update is nearly lr · sign(g), so only the optimizer states compare well where
        // g is close to 0.
        double allowed = tolerance;
        for (const model::ValueId state : entry.optimizer_states) {
          EXPECT_LE(RelativeError(run.Read(state), expected.Read(state)), allowed);
          allowed = 2 * tolerance;  // the squares have twice the error
        }
        if (compute() == DType::kFloat32) {
          EXPECT_LE(RelativeError(run.Read(entry.value), expected.Read(entry.value)), 1e-2);
        }
      }
    }
  }
}

TEST_P(KernelTest, SgdIsTorchsFormula) {
  ReferenceBackend reference_backend;
  const double tolerance = compute() == DType::kFloat32 ? 2e-5 : 0.06;
  constexpr double kRate = 0.5, kDecay = 0.3;
  for (const auto& [momentum, nesterov] :
       {std::pair(0.0, false), std::pair(0.9, false), std::pair(0.9, true)}) {
    model::BuildOptions options = SmallOptions(compute());
    options.optimizer = {.kind = &model::kSgdOptimizer,
                         .momentum = momentum,
                         .nesterov = nesterov,
                         .weight_decay = kDecay};
    ProgramRun run(*backend_, options, 3), expected(reference_backend, options, 3);
    SCOPED_TRACE(momentum + (nesterov ? 1 : 0));
    // By master: the buffer, computed here from the gradients that this backend has.
    std::map<model::ValueId, std::vector<double>> buffers;
    for (int step = 1; step <= 3; ++step) {
      const Microbatch microbatch = run.MakeMicrobatch(static_cast<uint64_t>(step));
      const std::vector<double> loss = expected.Train(microbatch, true);
      EXPECT_LE(RelativeError(run.Train(microbatch, true), loss), tolerance);
      std::map<model::ValueId, std::vector<double>> weights;
      for (const model::ParameterEntry& entry : run.program().parameters)
        weights[entry.value] = run.Read(entry.value);
      const std::vector<double> control = run.Update(kRate);
      expected.Update(kRate);
      const double scale =
          1 /
          std::max(1.0, std::sqrt(control[model::kLaneSumOfSquares]) / control[model::kLaneWeight] +
                            1e-6) /
          control[model::kLaneWeight];
      for (const model::ParameterEntry& entry : run.program().parameters) {
        SCOPED_TRACE(run.program().value(entry.value).name);
        const std::vector<double> gradient = run.Read(entry.gradient);
        std::vector<double>& buffer = buffers[entry.value];
        std::vector<double>& weight = weights[entry.value];
        buffer.resize(weight.size());
        const double decay = entry.parts[0].weight_decay ? kDecay : 0;
        for (size_t i = 0; i < weight.size(); ++i) {
          const double g = gradient[i] * scale + decay * weight[i];
          buffer[i] = momentum * buffer[i] + g;
          weight[i] -= kRate * (nesterov ? g + momentum * buffer[i] : buffer[i]);
        }
        EXPECT_EQ(entry.optimizer_states.size(), momentum == 0 ? 0u : 1u);
        for (const model::ValueId state : entry.optimizer_states)
          EXPECT_LE(RelativeError(run.Read(state), buffer), 1e-6);
        EXPECT_LE(RelativeError(run.Read(entry.value), weight), 1e-6);
        EXPECT_LE(RelativeError(run.Read(entry.value), expected.Read(entry.value)), tolerance);
        if (entry.compute_copy == entry.value) continue;
        EXPECT_LE(RelativeError(run.Read(entry.compute_copy), weight), 0.01);
      }
    }
  }
}

TEST_P(KernelTest, ProgramGivesTheSameBitsTwice) {
  for (const bool tied : {false, true}) {
    std::vector<std::vector<double>> seen[2];
    for (auto& numbers : seen) {
      ProgramRun run(*backend_, SmallOptions(compute(), tied), 7);
      for (int step = 1; step <= 3; ++step) {
        numbers.push_back(run.Train(run.MakeMicrobatch(step), true));
        numbers.push_back(run.Update(1e-2));
      }
      for (const model::ParameterEntry& entry : run.program().parameters) {
        numbers.push_back(run.Read(entry.value));
      }
    }
    EXPECT_EQ(seen[0], seen[1]);
  }
}

TEST_P(KernelTest, ProgramReducesTheLossOfARepeatedMicrobatch) {
  ProgramRun run(*backend_, SmallOptions(compute()), 3);
  const Microbatch microbatch = run.MakeMicrobatch(1);
  const double before = run.Train(microbatch, true)[0];
  run.Update(1e-2);
  for (int step = 2; step <= 20; ++step) {
    run.Train(microbatch, true);
    run.Update(1e-2);
  }
  EXPECT_LT(run.Evaluate(microbatch)[0], 0.5 * before);
}

// Without a target moments and weights decay as with any other gradient, here one of zero. A job
// that halts at numbers that are not finite does not halt.
TEST_P(KernelTest, ProgramWithoutATargetIsUpdatedWithAGradientOfZero) {
  ReferenceBackend reference_backend;
  model::BuildOptions options = SmallOptions(compute());
  options.halts = true;
  ProgramRun run(*backend_, options, 3), expected(reference_backend, options, 3);
  struct Moments {
    std::vector<double> mean, square;
  };
  std::vector<Moments> before;
  for (ProgramRun* const each : {&run, &expected}) {
    each->Write(each->program().halted, {0.0});
    each->Train(each->MakeMicrobatch(1), true);
    each->Update(1e-2);
  }
  for (const model::ParameterEntry& entry : run.program().parameters)
    before.push_back({run.Read(entry.optimizer_states[0]), run.Read(entry.optimizer_states[1])});
  for (ProgramRun* const each : {&run, &expected}) {
    Microbatch microbatch = each->MakeMicrobatch(2);
    std::ranges::fill(microbatch.weights, 0.0);
    EXPECT_EQ(each->Train(microbatch, true), (std::vector<double>{0.0, 0.0}));
    const std::vector<double> control = each->Update(1e-2);
    for (const int lane : {model::kLaneSumOfSquares, model::kLaneNonfinite, model::kLaneHalted}) {
      EXPECT_EQ(control[lane], 0.0) << "lane " << lane;
    }
    EXPECT_EQ(each->Read(each->program().applied_steps), std::vector<double>{2.0});
  }
  for (size_t p = 0; p < before.size(); ++p) {
    const model::ParameterEntry& entry = run.program().parameters[p];
    SCOPED_TRACE(run.program().value(entry.value).name);
    for (double& number : before[p].mean) number *= options.optimizer.beta1;
    for (double& number : before[p].square) number *= options.optimizer.beta2;
    EXPECT_LE(RelativeError(run.Read(entry.optimizer_states[0]), before[p].mean), 1e-6);
    EXPECT_LE(RelativeError(run.Read(entry.optimizer_states[1]), before[p].square), 1e-6);
    const std::vector<double> weights = run.Read(entry.value);
    EXPECT_TRUE(std::ranges::all_of(weights, [](double weight) { return std::isfinite(weight); }));
    if (compute() == DType::kFloat32) {
      EXPECT_LE(RelativeError(weights, expected.Read(entry.value)), 1e-2);
    }
  }
}

// The graph of a part of a step must give the same bits as its individual calls.
TEST_P(KernelTest, ProgramKeptInPartsHasTheBitsOfItsCalls) {
  std::vector<std::vector<double>> seen[2];
  for (const bool parts : {false, true}) {
    ProgramRun run(*backend_, SmallOptions(compute()), 5);
    Executable& executable = run.executable();
    const auto begin = [&](StepPart part) {
      return parts ? executable.BeginPart(part) : OkStatus();
    };
    const auto end = [&] { return parts ? executable.EndPart() : OkStatus(); };
    for (int step = 1; step <= 4; ++step) {
      const Microbatch microbatch = run.MakeMicrobatch(static_cast<uint64_t>(step));
      const model::ChunkInterface& chunk = run.program().chunks[0];
      ASSERT_TRUE(begin(StepPart::kGradients).ok());
      run.Write(chunk.Input(channels::kTokens), microbatch.tokens);
      run.Write(chunk.Input(channels::kPositions), microbatch.positions);
      run.Write(chunk.Input(channels::kTargets), microbatch.targets);
      run.Write(chunk.Input(channels::kWeights), microbatch.weights);
      run.Write(run.program().loss_totals, {0.0, 0.0});
      const RunOptions options{.first_microbatch = true, .last_microbatch = true};
      for (const model::Piece piece : {model::Piece::kUnshard, model::Piece::kForward,
                                       model::Piece::kBackward, model::Piece::kReduce}) {
        ASSERT_TRUE(executable.Run(0, piece, 0, options).ok());
      }
      ASSERT_TRUE(end().ok());
      seen[parts].push_back(run.Read(run.program().loss_totals));
      ASSERT_TRUE(begin(StepPart::kUpdate).ok());
      run.Write(run.program().control_word, std::vector<double>(model::kControlLanes, 0.0));
      run.Write(run.program().learning_rate, {1e-2});
      ASSERT_TRUE(executable.RunUpdate().ok());
      ASSERT_TRUE(end().ok());
      seen[parts].push_back(run.Read(run.program().control_word));
    }
    for (const model::ParameterEntry& entry : run.program().parameters) {
      seen[parts].push_back(run.Read(entry.value));
    }
  }
  EXPECT_EQ(seen[0], seen[1]);
}

}  // namespace
}  // namespace troupe::kernels
