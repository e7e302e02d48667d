#include "model/cost.h"

#include <gtest/gtest.h>

#include "model/testing.h"

namespace troupe::model {
namespace {

// Closed formulas of the FLOPs of a dense Llama, forward and backward.
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
  // Embedding, attention, MLP: rows × hidden; then the max and the sums of the rows.
  ASSERT_EQ(forward.size(), 5u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(forward[i].payload_bytes, 16 * 16 * 4);
  EXPECT_EQ(forward[3].payload_bytes, 16 * 4);
  EXPECT_EQ(forward[4].payload_bytes, 2 * 16 * 4);
  EXPECT_DOUBLE_EQ(forward[0].sent_bytes, 16 * 16 * 4);
  EXPECT_EQ(Collectives(program, program.Ops(0, Piece::kBackward)).size(), 3u);
  EXPECT_TRUE(Collectives(program, program.Ops(0, Piece::kReduce)).empty());
}

// Bytes that one rank sends in F and B for a purpose.
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

// The FLOPs summed over the ranks of `mesh` along the axes of a block E.
double FlopsOfAllRanks(BuildOptions options) {
  const PerAxis degrees = options.mesh.degrees;
  double sum = 0;
  for (int tensor = 0; tensor < degrees[Axis::kTensor]; ++tensor) {
    for (int expert = 0; expert < degrees[Axis::kExpert]; ++expert) {
      options.mesh.coordinates[Axis::kTensor] = tensor;
      options.mesh.coordinates[Axis::kExpert] = expert;
      sum += ModelFlops(BuildProgram(options).value(), 0).total();
    }
  }
  return sum;
}

TEST(ModelFlopsTest, OfExpertsAreThoseOfTheActiveOnesOverEveryAxis) {
  ModelConfig model = SmallMixture("E");
  const Program one = BuildProgram(StageOptions(model, {}, 2, 8)).value();
  // 16 tokens through 2 + 1 experts with gate, up and down [10, 16], and the head [37, 16].
  const double forward = 16 * 2.0 * ((2 + 1) * 3 * 10 * 16 + 37 * 16);
  EXPECT_DOUBLE_EQ(ModelFlops(one, 0).total(), 3 * forward);
  for (const bool gathers : {false, true}) {
    for (const bool spread : {false, true}) {
      BuildOptions options = StageOptions(model, {}, 2, 8);
      options.mesh.degrees[Axis::kTensor] = 2;
      options.mesh.degrees[Axis::kExpert] = 2;
      options.sequence_parallel = true;
      options.spread_experts_over_tensor = spread;
      options.gather_dispatch = gathers;
      // Each expert rank has 2 samples of its own.
      EXPECT_DOUBLE_EQ(FlopsOfAllRanks(options), 2 * 3 * forward);
    }
  }
  BuildOptions whole_rows = StageOptions(model, {}, 2, 8);
  whole_rows.mesh.degrees[Axis::kTensor] = 2;
  EXPECT_DOUBLE_EQ(FlopsOfAllRanks(whole_rows), 3 * forward);
}

TEST(CollectivesTest, OfExpertsCountWhatRoutingIsExpectedToSend) {
  BuildOptions options = StageOptions(SmallMixture("E"), {}, 2, 8);
  options.mesh.degrees[Axis::kTensor] = 2;
  options.mesh.degrees[Axis::kExpert] = 2;
  options.sequence_parallel = true;
  const Program program = BuildProgram(options).value();
  double routed = 0;
  for (const CollectiveCost& cost : Collectives(program, program.Ops(0, Piece::kForward))) {
    if (cost.kind != OpKind::kGatherRouted) continue;
    routed += static_cast<double>(cost.payload_bytes);
    EXPECT_DOUBLE_EQ(cost.sent_bytes, 0.5 * static_cast<double>(cost.payload_bytes));
  }
  // 2 · 8 tokens with 2 choices of 16 floats, independent of the buffers' sizes.
  EXPECT_DOUBLE_EQ(routed, 2 * 8 * 2 * 16 * 4);
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
    // qkv [8, (4+2·2)·4] and o [8, 16] are sent in both directions, half of each; two blocks.
    EXPECT_DOUBLE_EQ(SentBytes(program, CollectivePurpose::kContext),
                     2 * 2 * 0.5 * 4 * (8 * 32 + 8 * 16));
  }
  EXPECT_DOUBLE_EQ(sum, whole);
}

}  // namespace
}  // namespace troupe::model
