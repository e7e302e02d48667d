#include "model/parameter_slices.h"

#include <gtest/gtest.h>

#include <map>

#include "model/testing.h"

namespace troupe::model {
namespace {

// Over all ranks, the number of ranks that hold an element equals the number of replicas given by
// its replicated axes.
TEST(ParameterSlicesTest, CoverEveryGlobalTensorOnceForEachReplica) {
  MeshView mesh;
  mesh.degrees[Axis::kPipe] = 2;
  mesh.degrees[Axis::kDataReplicate] = 2;
  mesh.degrees[Axis::kTensor] = 2;
  ModelConfig model = SmallModel("ADAD");
  model.tie_word_embeddings = true;
  std::map<std::string, std::vector<double>> held;
  for (int rank = 0; rank < 8; ++rank) {
    mesh.coordinates[Axis::kPipe] = rank / 4;
    mesh.coordinates[Axis::kDataReplicate] = rank / 2 % 2;
    mesh.coordinates[Axis::kTensor] = rank % 2;
    const Program program = BuildProgram(StageOptions(model, mesh, 2, 8)).value();
    for (const ParameterSlice& slice : ParameterSlices(program)) {
      double replicas = slice.tied ? 2 : 1;
      for (int a = 0; a < kNumAxes; ++a) {
        if (slice.replicated_axes & (1u << a)) replicas *= mesh.degrees.of[a];
      }
      const int64_t rows = slice.local_shape[0],
                    global_columns = slice.global_shape.size() == 2 ? slice.global_shape[1] : 1;
      const int64_t columns = slice.local_shape.size() == 2 ? slice.local_shape[1] : 1;
      const int64_t column_offset = slice.offset.size() == 2 ? slice.offset[1] : 0;
      ASSERT_LE(slice.element_offset + rows * columns, program.value(slice.value).elements())
          << slice.name;
      std::vector<double>& elements = held[slice.name];
      elements.resize(static_cast<size_t>(slice.global_shape[0] * global_columns));
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
          elements.at(static_cast<size_t>((slice.offset[0] + r) * global_columns + column_offset +
                                          c)) += 1 / replicas;
        }
      }
    }
  }
  // 9 tensors per layer, embedding and final norm, three of each; and the number of applied steps.
  EXPECT_EQ(held.size(), 3u * (2 * 9 + 2) + 1);
  for (const auto& [name, elements] : held) {
    for (const double count : elements) ASSERT_DOUBLE_EQ(count, 1) << name;
  }
  EXPECT_TRUE(held.contains("exp_avg_sq.model.layers.1.self_attn.k_proj.weight"));
}

}  // namespace
}  // namespace troupe::model
