// Checks which rows of which parameters have weight decay.
#include "model/program/weight_decay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/build.h"
#include "model/parameter_names.h"
#include "model/testing.h"

namespace troupe::model {
namespace {

using testing::Contains;

TEST(WeightDecay, OfTensorsOfOneDimensionIsNoneUnlessAListReplacesThat) {
  EXPECT_TRUE(DecaysWeight("model.embed_tokens.weight", {37, 16}, {}));
  EXPECT_FALSE(DecaysWeight("model.norm.weight", {16}, {}));
  const std::vector<std::string> embedding = {"*embed_tokens*"};
  EXPECT_FALSE(DecaysWeight("model.embed_tokens.weight", {37, 16}, embedding));
  EXPECT_TRUE(DecaysWeight("model.norm.weight", {16}, embedding));
  EXPECT_TRUE(DecaysWeight("model.norm.weight", {16}, {""}));
}

TEST(WeightDecay, GlobsAreOfTheWholeName) {
  EXPECT_TRUE(MatchesGlob("*.q_proj.weight", "model.layers.0.self_attn.q_proj.weight"));
  EXPECT_FALSE(MatchesGlob("q_proj", "model.layers.0.self_attn.q_proj.weight"));
  EXPECT_TRUE(MatchesGlob("model.layers.[0-3].*", "model.layers.2.input_layernorm.weight"));
  EXPECT_FALSE(MatchesGlob("model.layers.[0-3].*", "model.layers.4.input_layernorm.weight"));
  EXPECT_TRUE(MatchesGlob("model.layers.1?.*", "model.layers.11.input_layernorm.weight"));
}

TEST(WeightDecay, MayDifferBetweenTheTensorsOfAFusedParameter) {
  MeshView mesh;
  mesh.degrees[Axis::kTensor] = 2;
  BuildOptions options = StageOptions(SmallModel("AD"), mesh, 2, 8);
  options.no_weight_decay = {"*.k_proj.weight", "*.gate_proj.weight"};
  const Program program = BuildProgram(options).value();
  int fused = 0;
  for (const ParameterEntry& entry : program.parameters) {
    const std::string& name = program.value(entry.value).name;
    const std::vector<DecayRun> runs = DecayRuns(entry);
    int64_t rows = 0;
    for (const DecayRun& run : runs) {
      EXPECT_EQ(run.rows.begin, rows) << name;
      rows = run.rows.end;
    }
    EXPECT_EQ(rows, program.value(entry.value).dims[0].local) << name;
    if (name.ends_with("qkv_proj")) {
      ASSERT_EQ(runs.size(), 3u);  // q decays, k does not, v does
      EXPECT_TRUE(runs[0].decays && !runs[1].decays && runs[2].decays);
      ++fused;
    } else if (name.ends_with("gate_up_proj")) {
      ASSERT_EQ(runs.size(), 2u);
      EXPECT_TRUE(!runs[0].decays && runs[1].decays);
      ++fused;
    } else {
      ASSERT_EQ(runs.size(), 1u) << name;
      EXPECT_TRUE(runs[0].decays) << name;
    }
  }
  EXPECT_EQ(fused, 2);
}

TEST(ParameterNames, AreThoseOfAllExpertsAndBlocks) {
  const auto names = ParameterNames(SmallMixture("AEAD"));
  ASSERT_TRUE(names.ok()) << names.status();
  for (const char* name :
       {"model.embed_tokens.weight", "model.layers.0.mlp.experts.3.up_proj.weight",
        "model.layers.0.mlp.gate.weight", "model.layers.1.mlp.down_proj.weight",
        "model.norm.weight", "lm_head.weight"}) {
    EXPECT_THAT(*names, Contains(name));
  }
}

}  // namespace
}  // namespace troupe::model
