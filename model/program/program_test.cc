// Compares programs as text with golden files. To accept a change, run with TROUPE_UPDATE_GOLDEN=1
// and review the diff.
#include "model/program/program.h"

#include <gtest/gtest.h>

#include "base/golden/golden_file.h"
#include "model/testing.h"

namespace troupe::model {
namespace {

void CompareWithGolden(const std::string& name, const std::string& text) {
  ExpectGolden("model/golden/" + name + ".txt", text);
}

std::string Text(int tensor, int pipe, int stage, bool tied, DType dtype) {
  ModelConfig model = SmallModel("AD");
  model.tie_word_embeddings = tied;
  MeshView mesh;
  mesh.degrees[Axis::kTensor] = tensor;
  mesh.coordinates[Axis::kTensor] = tensor - 1;
  mesh.degrees[Axis::kPipe] = pipe;
  mesh.coordinates[Axis::kPipe] = stage;
  BuildOptions options = StageOptions(model, mesh, 2, 8);
  options.compute_dtype = dtype;
  return ToText(BuildProgram(options).value());
}

TEST(ProgramTextTest, OfOneRank) {
  CompareWithGolden("one_rank", Text(1, 1, 0, false, DType::kFloat32));
}

TEST(ProgramTextTest, OfTheFirstStageTensorTwoTiedBfloat16) {
  CompareWithGolden("first_stage_tensor_2", Text(2, 2, 0, true, DType::kBFloat16));
}

TEST(ProgramTextTest, OfTheLastStageTensorTwoTiedBfloat16) {
  CompareWithGolden("last_stage_tensor_2", Text(2, 2, 1, true, DType::kBFloat16));
}

TEST(ProgramTextTest, OfDelayedFloat8TensorTwoByRows) {
  MeshView mesh;
  mesh.degrees[Axis::kTensor] = 2;
  BuildOptions options = StageOptions(SmallModel("D"), mesh, 2, 8);
  options.compute_dtype = DType::kBFloat16;
  options.float8 = Float8Recipe::kDelayed;
  options.sequence_parallel = true;
  CompareWithGolden("float8_delayed_tensor_2", ToText(BuildProgram(options).value()));
}

// A parameter is a block within a block; Unshard gathers across runs, F and B within one.
TEST(ProgramTextTest, OfRunsOfTwoOfFourShards) {
  MeshView mesh;
  mesh.degrees[Axis::kDataShard] = 4;
  mesh.coordinates[Axis::kDataShard] = 1;
  BuildOptions options = StageOptions(SmallModel("D"), mesh, 1, 8);
  options.compute_dtype = DType::kBFloat16;
  options.zero_stage = 3;
  options.shard_run = 2;
  options.bucket_elements = 1;
  CompareWithGolden("shard_4_run_2", ToText(BuildProgram(options).value()));
}

}  // namespace
}  // namespace troupe::model
