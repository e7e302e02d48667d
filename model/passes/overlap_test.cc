#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "model/build.h"
#include "model/testing.h"

namespace troupe::model {
namespace {

BuildOptions OverlapOptions(Axis axis, int zero_stage) {
  MeshView mesh;
  mesh.degrees[axis] = 2;
  BuildOptions options = StageOptions(SmallModel("ADADAD"), mesh, 2, 8);
  options.zero_stage = zero_stage;
  return options;
}

struct Flight {
  Op op;
  size_t begin = 0, end = 0;  // indices of the collective and its wait
  int matmuls = 0;            // matmuls computed meanwhile
};

std::vector<Flight> FlightsOf(const std::vector<Op>& ops) {
  std::vector<Flight> flights;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!ops[i].asynchronous) continue;
    Flight flight = {ops[i], i};
    for (flight.end = i + 1; flight.end < ops.size(); ++flight.end) {
      const Op& op = ops[flight.end];
      if (op.kind == OpKind::kWait && op.inputs[0] == ops[i].outputs[0]) break;
      flight.matmuls += IsMatmul(op);
    }
    flights.push_back(flight);
  }
  return flights;
}

TEST(OverlapTest, ALayersParametersAreGatheredWhileTheLayerBeforeItComputes) {
  const Program program = BuildProgram(OverlapOptions(Axis::kDataShard, 3)).value();
  for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
    const std::vector<Op>& ops = program.Ops(0, piece);
    int hidden = 0, gathers = 0;
    for (const Flight& flight : FlightsOf(ops)) {
      if (flight.op.kind != OpKind::kAllGather) continue;
      ++gathers;
      hidden += flight.matmuls > 0;
      // Never further ahead than one layer of six matmuls plus the matmuls of the layer itself.
      EXPECT_LE(flight.matmuls, piece == Piece::kForward ? 12 : 24) << ToText(flight.op, program);
    }
    for (const Op& op : ops) {
      EXPECT_TRUE(op.kind != OpKind::kAllGather || op.asynchronous) << ToText(op, program);
    }
    EXPECT_GE(gathers, 18) << Name(piece);
    EXPECT_GE(hidden, gathers - 8) << Name(piece);
  }
}

TEST(OverlapTest, ABucketOfGradientsIsScatteredUntilTheNextOneIsReady) {
  BuildOptions options = OverlapOptions(Axis::kDataShard, 2);
  options.bucket_elements = 1;
  const Program program = BuildProgram(options).value();
  const std::vector<Op>& ops = program.Ops(0, Piece::kBackward);
  const std::vector<Flight> flights = FlightsOf(ops);
  ASSERT_GT(flights.size(), 10u);
  for (size_t f = 0; f + 1 < flights.size(); ++f) {
    EXPECT_EQ(flights[f].op.kind, OpKind::kReduceScatter);
    EXPECT_LE(flights[f].begin, flights[f + 1].begin);
    // At most two buckets are alive.
    EXPECT_TRUE(f + 2 >= flights.size() || flights[f].end < flights[f + 2].begin);
  }
}

TEST(OverlapTest, SumsOverTensorAreInFlightWhileTheGradientsOfWeightsAreComputed) {
  for (const bool sequence_parallel : {false, true}) {
    BuildOptions options = OverlapOptions(Axis::kTensor, 0);
    options.sequence_parallel = sequence_parallel;
    const Program program = BuildProgram(options).value();
    const std::vector<Flight> flights = FlightsOf(program.Ops(0, Piece::kBackward));
    // One for each block.
    EXPECT_GE(flights.size(), 6u);
    for (const Flight& flight : flights) {
      EXPECT_EQ(flight.op.kind, sequence_parallel ? OpKind::kReduceScatter : OpKind::kAllReduce);
      EXPECT_GE(flight.matmuls, 1) << ToText(flight.op, program);
    }
  }
}

TEST(OverlapTest, CanBeLeftOut) {
  BuildOptions options = OverlapOptions(Axis::kDataShard, 3);
  options.overlap = false;
  const Program program = BuildProgram(options).value();
  EXPECT_EQ(ToText(program).find("asynchronous"), std::string::npos);
}

BuildOptions MixtureWithSharedExpert() {
  MeshView mesh;
  mesh.degrees[Axis::kExpert] = 2;
  BuildOptions options = StageOptions(SmallModel("AEAE"), mesh, 2, 8);
  options.model.experts.num_experts = 4;
  options.model.experts.num_experts_per_tok = 2;
  options.model.experts.moe_intermediate_size = 12;
  options.model.experts.num_shared_experts = 1;
  return options;
}

TEST(OverlapTest, RoutedRowsTravelWhileSharedExpertsCompute) {
  const Program program = BuildProgram(MixtureWithSharedExpert()).value();
  for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
    int hidden = 0;
    for (const Flight& flight : FlightsOf(program.Ops(0, piece))) {
      hidden += flight.op.kind == OpKind::kAllToAll && flight.matmuls > 0;
    }
    // The dispatch of each of two blocks; in B that of the gradients of its rows.
    EXPECT_EQ(hidden, 2) << Name(piece);
  }
}

TEST(OverlapTest, DropoutTakesRoutedAndSharedExpertsTogether) {
  BuildOptions options = MixtureWithSharedExpert();
  options.model.hidden_dropout = 0.1;
  const Program program = BuildProgram(options).value();
  const std::vector<Op>& ops = program.Ops(0, Piece::kForward);
  // One for the embedding and one for each of four blocks.
  EXPECT_EQ(std::count_if(ops.begin(), ops.end(),
                          [](const Op& op) { return op.kind == OpKind::kDropout; }),
            5);
}

}  // namespace
}  // namespace troupe::model
