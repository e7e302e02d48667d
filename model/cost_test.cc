#include "model/cost.h"

#include <gtest/gtest.h>

#include "model/testing.h"

namespace troupe::model {
namespace {

// facts' formulas for a dense Llama, forward and backward.
double FormulaFlops(const ModelConfig& m, double tokens, double squared_lengths) {
  const double h = static_cast<double>(m.hidden_size),
               q = static_cast<double>(m.head_dim * m.num_attention_heads);
  const double k = static_cast<double>(m.head_dim * m.num_key_value_heads);
  double flops = 6 * tokens * h * static_cast<double>(m.vocab_size);
  for (const char block : m.blocks) {
    flops += block == 'A'
                 ? 6 * tokens * h * (q + 2 * k) + 6 * tokens * q * h + squared_lengths * 6 * q
                 : 6 * tokens * h * static_cast<double>(m.intermediate_size) * 3;
  }
  return flops;
}

TEST(ModelFlopsTest, OfLlama124mAreThoseOfTheFormulas) {
  for (const auto& [batch, sequence] : {std::pair(4, 256), std::pair(4, 1024)}) {
    const Program program = BuildProgram(StageOptions(Llama124m(), {}, batch, sequence)).value();
    const PartFlops flops = ModelFlops(program, 0);
    const double tokens = batch * sequence;
    EXPECT_NEAR(flops.total() / FormulaFlops(Llama124m(), tokens, tokens * sequence), 1, 1e-12);
    EXPECT_NEAR(flops.input_gradient + flops.weight_gradient, 2 * flops.forward,
                1e-6 * flops.forward);
    EXPECT_DOUBLE_EQ(
        ModelFlops(program, 0, Piece::kForward) + ModelFlops(program, 0, Piece::kBackward),
        flops.total());
    EXPECT_DOUBLE_EQ(ModelFlops(program, 0, Piece::kInputGradient) +
                         ModelFlops(program, 0, Piece::kWeightGradient),
                     ModelFlops(program, 0, Piece::kBackward));
  }
}

TEST(ModelFlopsTest, OfAllRanksAddUpToTheWhole) {
  ModelConfig model = SmallModel("ADADA");
  const double whole = ModelFlops(BuildProgram(StageOptions(model, {}, 2, 8)).value(), 0).total();
  MeshView mesh;
  mesh.degrees[Axis::kPipe] = 2;
  mesh.degrees[Axis::kTensor] = 2;
  double sum = 0;
  for (int rank = 0; rank < 4; ++rank) {
    mesh.coordinates[Axis::kPipe] = rank / 2;
    mesh.coordinates[Axis::kTensor] = rank % 2;
    sum += ModelFlops(BuildProgram(StageOptions(model, mesh, 2, 8)).value(), 0).total();
  }
  EXPECT_DOUBLE_EQ(sum, whole);
}

TEST(CollectivesTest, ListWhatIsSentAndLeaveOutGroupsOfOne) {
  MeshView mesh;
  EXPECT_TRUE(
      Collectives(
          BuildProgram(StageOptions(SmallModel("AD"), mesh, 2, 8)).value(),
          BuildProgram(StageOptions(SmallModel("AD"), mesh, 2, 8)).value().Ops(0, Piece::kForward))
          .empty());
  mesh.degrees[Axis::kTensor] = 2;
  const Program program = BuildProgram(StageOptions(SmallModel("AD"), mesh, 2, 8)).value();
  const auto forward = Collectives(program, program.Ops(0, Piece::kForward));
  // Embedding, attention, MLP: rows × hidden; then max and sums of the rows.
  ASSERT_EQ(forward.size(), 5u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(forward[i].payload_bytes, 16 * 16 * 4);
  EXPECT_EQ(forward[3].payload_bytes, 16 * 4);
  EXPECT_EQ(forward[4].payload_bytes, 2 * 16 * 4);
  EXPECT_DOUBLE_EQ(forward[0].sent_bytes, 16 * 16 * 4);
  EXPECT_EQ(Collectives(program, program.Ops(0, Piece::kBackward)).size(), 3u);
  EXPECT_TRUE(Collectives(program, program.Ops(0, Piece::kReduce)).empty());
}

// Bytes that one rank sends in F and B, by purpose.
double SentBytes(const Program& program, CollectivePurpose purpose) {
  double bytes = 0;
  for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
    for (const CollectiveCost& cost : Collectives(program, program.Ops(0, piece))) {
      if (cost.purpose == purpose) bytes += cost.sent_bytes;
    }
  }
  return bytes;
}

TEST(CollectivesTest, SequenceParallelismSendsTheSameBytesAndShrinksWhatCrossesStages) {
  MeshView mesh;
  mesh.degrees[Axis::kTensor] = 2;
  BuildOptions options = StageOptions(SmallModel("ADAD"), mesh, 2, 8);
  const Program whole = BuildProgram(options).value();
  options.sequence_parallel = true;
  const Program by_rows = BuildProgram(options).value();
  EXPECT_EQ(SentBytes(whole, CollectivePurpose::kSequence), 0);
  EXPECT_GT(SentBytes(by_rows, CollectivePurpose::kSequence), 0);
  EXPECT_DOUBLE_EQ(SentBytes(by_rows, CollectivePurpose::kSequence) +
                       SentBytes(by_rows, CollectivePurpose::kTensor),
                   SentBytes(whole, CollectivePurpose::kTensor));
  EXPECT_DOUBLE_EQ(ModelFlops(by_rows, 0).total(), ModelFlops(whole, 0).total());
  options.mesh.degrees[Axis::kPipe] = 2;
  options.chunks[0].has_head = false;
  options.chunks[0].block_count = 2;
  const Program stage = BuildProgram(options).value();
  EXPECT_EQ(stage.value(stage.chunks[0].output).dims[0].local, 8);
  EXPECT_EQ(stage.value(stage.chunks[0].output).dims[0].global, 16);
}

TEST(ModelFlopsTest, OfContextRanksAddUpToTheWhole) {
  ModelConfig model = SmallModel("ADAD");
  const double whole = ModelFlops(BuildProgram(StageOptions(model, {}, 2, 8)).value(), 0).total();
  MeshView mesh;
  mesh.degrees[Axis::kContext] = 2;
  double sum = 0;
  for (int rank = 0; rank < 2; ++rank) {
    mesh.coordinates[Axis::kContext] = rank;
    const Program program = BuildProgram(StageOptions(model, mesh, 2, 8)).value();
    sum += ModelFlops(program, 0).total();
    // qkv [8, (4+2·2)·4] and o [8, 16] there and back, half of it sent; two blocks.
    EXPECT_DOUBLE_EQ(SentBytes(program, CollectivePurpose::kContext),
                     2 * 2 * 0.5 * 4 * (8 * 32 + 8 * 16));
  }
  EXPECT_DOUBLE_EQ(sum, whole);
}

}  // namespace
}  // namespace troupe::model
