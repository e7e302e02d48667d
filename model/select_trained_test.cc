#include "model/select_trained.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/build.h"
#include "model/testing.h"

namespace troupe::model {
namespace {

using testing::HasSubstr;

std::set<int> BlocksOf(const std::string& glob) {
  const auto trained = SelectTrained(SmallModel("ADAD"), {glob});
  EXPECT_TRUE(trained.ok()) << trained.status();
  return trained.ok() ? trained->blocks : std::set<int>{};
}

TEST(SelectTrained, FindsTheBlocksThatAreTrained) {
  using Blocks = std::set<int>;
  EXPECT_EQ(BlocksOf("*"), (Blocks{-1, 0, 1, 2, 3, 4}));
  EXPECT_EQ(BlocksOf("model.embed_tokens.weight"), Blocks{-1});
  EXPECT_EQ(BlocksOf("*self_attn*"), (Blocks{0, 2}));
  EXPECT_EQ(BlocksOf("*mlp*"), (Blocks{1, 3}));
  EXPECT_EQ(BlocksOf("model.layers.1.*"), (Blocks{2, 3}));
  EXPECT_EQ(BlocksOf("model.norm.weight"), Blocks{4});
  EXPECT_EQ(BlocksOf("lm_head.weight"), Blocks{4});
  ModelConfig tied = SmallModel("ADAD");
  tied.tie_word_embeddings = true;
  EXPECT_EQ(SelectTrained(tied, {"*embed_tokens*"})->blocks, (Blocks{-1, 4}));
}

TEST(SelectTrained, KnowsWhoseInputsNeedGradients) {
  const TrainedParameters all = SelectTrained(SmallModel("ADAD"), {}).value();
  EXPECT_TRUE(all.TrainsBefore(0) && all.Trains(-1) && all.Trains(4));
  const TrainedParameters mlp = SelectTrained(SmallModel("ADAD"), {"*mlp*"}).value();
  EXPECT_FALSE(mlp.TrainsBefore(1));
  EXPECT_TRUE(mlp.TrainsBefore(2));
  EXPECT_FALSE(mlp.Trains(2));
}

TEST(SelectTrained, RefusesAPartOfAMatrixAndWhatDoesNotExist) {
  const Status part = SelectTrained(SmallModel("AD"), {"*.q_proj.weight"}).status();
  EXPECT_EQ(part.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(part), HasSubstr("q_proj.weight but not model.layers.0.self_attn.k_proj"));
  EXPECT_FALSE(SelectTrained(SmallMixture("AE"), {"*.experts.0.*"}).ok());
  EXPECT_EQ(SelectTrained(SmallModel("AD"), {"*lora*"}).status().code(),
            StatusCode::kInvalidArgument);
}

int Count(const std::vector<Op>& ops, OpKind kind) {
  return static_cast<int>(
      std::ranges::count_if(ops, [&](const Op& op) { return op.kind == kind; }));
}

TEST(FrozenParameters, HaveNeitherGradientNorStatesNorWorkThatNobodyNeeds) {
  BuildOptions options = StageOptions(SmallModel("ADAD"), {}, 2, 8);
  options.compute_dtype = DType::kBFloat16;
  options.trained = SelectTrained(options.model, {"model.layers.1.mlp.*"}).value();
  const Program program = BuildProgram(options).value();
  for (const ParameterEntry& entry : program.parameters) {
    const Value& value = program.value(entry.value);
    const bool is_trained = entry.parts[0].name.starts_with("model.layers.1.mlp.");
    EXPECT_EQ(entry.trained(), is_trained) << value.name;
    EXPECT_EQ(entry.optimizer_states.size(), is_trained ? 2u : 0u) << value.name;
    if (is_trained) continue;
    EXPECT_EQ(entry.compute_copy, entry.value) << value.name;
    EXPECT_EQ(value.dtype, value.dims.size() > 1 ? DType::kBFloat16 : DType::kFloat32);
  }
  // Backward ends at the last block.
  const std::vector<Op>& backward = program.Ops(0, Piece::kBackward);
  EXPECT_EQ(Count(backward, OpKind::kAttentionGrad), 0);
  EXPECT_EQ(Count(backward, OpKind::kEmbeddingGrad), 0);
  EXPECT_EQ(Count(backward, OpKind::kMatmulGradWeight), 2);
  EXPECT_EQ(Count(backward, OpKind::kMatmulGradInput), 2) << "head, down_proj";
}

TEST(FrozenParameters, OfARouterKeepItsBiasToo) {
  BuildOptions options = StageOptions(SmallMixture("AE"), {}, 2, 8);
  options.model.experts.bias_update_rate = 0.01;
  for (const auto& [glob, updates] :
       {std::pair("*.mlp.gate.weight", 1), {"*.weight", 1}, {"*self_attn*", 0}}) {
    options.trained = SelectTrained(options.model, {glob}).value();
    const Program program = BuildProgram(options).value();
    EXPECT_EQ(Count(program.update, OpKind::kRouterBias), updates) << glob;
  }
}

TEST(FrozenParameters, OfAllChunksBelowNeedNoGradientOfTheInput) {
  for (const int stage : {0, 1}) {
    MeshView mesh;
    mesh.degrees[Axis::kPipe] = 2;
    mesh.coordinates[Axis::kPipe] = stage;
    BuildOptions options = StageOptions(SmallModel("ADAD"), mesh, 2, 8);
    options.trained = SelectTrained(options.model, {"model.layers.1.*"}).value();
    const Program program = BuildProgram(options).value();
    EXPECT_EQ(program.chunks[0].output_gradient, kNoValue);
    EXPECT_EQ(program.chunks[0].input_gradient, kNoValue);
    EXPECT_EQ(program.Ops(0, Piece::kBackward).empty(), stage == 0);
  }
}

}  // namespace
}  // namespace troupe::model
