#include "model/optimizers/optimizer_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "model/build.h"
#include "model/optimizers/optimizer_bytes.h"
#include "model/parameter_slices.h"
#include "model/testing.h"

namespace troupe::model {
namespace {

OptimizerConfig SgdConfig(double momentum) {
  return {.kind = &kSgdOptimizer, .momentum = momentum};
}

TEST(OptimizerKinds, AreFoundByTheirNames) {
  for (const OptimizerKind* const kind : OptimizerKinds())
    EXPECT_EQ(FindOptimizer(kind->name), kind);
  EXPECT_EQ(FindOptimizer("adam"), nullptr);
  EXPECT_EQ(FindOptimizer(""), nullptr);
}

// AdamW reads a gradient, reads and writes the master and two moments, and writes the copy.
TEST(OptimizerBytes, AreThoseOfTheOperation) {
  struct Case {
    OptimizerConfig config;
    bool copies;
    double state, moved;
  };
  for (const Case& now : std::vector<Case>{{{}, false, 8, 28},
                                           {{}, true, 8, 30},
                                           {SgdConfig(0), false, 0, 12},
                                           {SgdConfig(0), true, 0, 14},
                                           {SgdConfig(0.9), false, 4, 20},
                                           {SgdConfig(0.9), true, 4, 22}}) {
    SCOPED_TRACE(std::string(now.config.kind->name) + (now.copies ? " with copies" : ""));
    EXPECT_EQ(BytesOfOptimizer(now.config, now.copies).state, now.state);
    EXPECT_EQ(BytesOfOptimizer(now.config, now.copies).moved, now.moved);
  }
}

// The tensors of a checkpoint before each weight's name, and those of no weight.
std::set<std::string> PrefixesOf(const OptimizerConfig& config) {
  BuildOptions options = StageOptions(SmallModel("AD"), {}, 1, 8);
  options.optimizer = config;
  std::set<std::string> prefixes;
  for (const ParameterSlice& slice : ParameterSlices(BuildProgram(options).value())) {
    const size_t name = std::min(slice.name.find("model."), slice.name.find("lm_head."));
    prefixes.insert(slice.name.substr(0, name));
  }
  return prefixes;
}

TEST(OptimizerStates, HaveANameInCheckpoints) {
  const std::string applied = kAppliedStepsTensor;
  EXPECT_EQ(PrefixesOf({}), (std::set<std::string>{"", "exp_avg.", "exp_avg_sq.", applied}));
  EXPECT_EQ(PrefixesOf(SgdConfig(0)), (std::set<std::string>{"", applied}));
  EXPECT_EQ(PrefixesOf(SgdConfig(0.5)), (std::set<std::string>{"", "momentum_buffer.", applied}));
}

TEST(StatesOfAProgram, AreListedByKindAndName) {
  const Program program = BuildProgram(StageOptions(SmallModel("AD"), {}, 1, 8)).value();
  const size_t count = program.parameters.size();
  ASSERT_EQ(program.states.size(), 3 * count + 1);
  for (size_t p = 0; p < count; ++p) {
    const ParameterEntry& entry = program.parameters[p];
    EXPECT_EQ(program.states[p].value, entry.value);
    EXPECT_EQ(program.states[count + p].value, entry.optimizer_states[0]);
    EXPECT_EQ(program.states[2 * count + p].value, entry.optimizer_states[1]);
    EXPECT_EQ(program.states[p].parameter, static_cast<int>(p));
  }
  EXPECT_EQ(program.states.back().value, program.applied_steps);
}

// Router biases come while parameters are added, histories of float8 after all of them.
TEST(StatesOfAProgram, OfRoutersAndOfFloat8FollowTheOptimizers) {
  ModelConfig model = SmallMixture("AEAE");
  model.experts.bias_update_rate = 0.001;
  BuildOptions options = StageOptions(model, {}, 1, 8);
  options.compute_dtype = DType::kBFloat16;
  options.float8 = Float8Recipe::kDelayed;
  const Program program = BuildProgram(options).value();
  ASSERT_EQ(program.router_biases.size(), 2u);
  ASSERT_GT(program.amax_histories.size(), 0u);
  std::vector<ValueId> expected;
  for (const ParameterEntry& entry : program.parameters) expected.push_back(entry.value);
  for (const size_t state : {0, 1}) {
    for (const ParameterEntry& entry : program.parameters)
      expected.push_back(entry.optimizer_states[state]);
  }
  for (const ValueId bias : program.router_biases) expected.push_back(bias);
  for (const AmaxHistory& entry : program.amax_histories) expected.push_back(entry.history);
  expected.push_back(program.applied_steps);
  std::vector<ValueId> listed;
  for (const State& state : program.states) listed.push_back(state.value);
  EXPECT_EQ(listed, expected);
}

}  // namespace
}  // namespace troupe::model
