// Programs of several ranks over loopback: collectives reach the right groups, and say who failed.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/check.h"
#include "collective/loopback/loopback_cluster.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/program_run.h"
#include "kernels/reference/reference_backend.h"
#include "kernels/testing.h"
#include "model/program/builder.h"
#include "model/program/control_word.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

constexpr int kRanks = 2;

model::BuildOptions TensorOptions(model::DType compute, int degree, int rank) {
  model::MeshView mesh;
  mesh.degrees[model::Axis::kTensor] = degree;
  mesh.coordinates[model::Axis::kTensor] = rank;
  model::BuildOptions options = model::StageOptions(model::SmallModel("ADAD"), mesh, 3, 11);
  options.compute_dtype = compute;
  return options;
}

// The tensor group and the group of all ranks of one rank; groups of other axes have one rank.
FindCommunicator Groups(LoopbackCluster& cluster, int rank) {
  CollectiveNetwork& network = cluster.network(rank);
  Communicator* tensor =
      network.MakeCommunicator("tensor", Purpose::kTensor, {0, 1}, "tensor/0").value();
  Communicator* all = network.MakeCommunicator("all", Purpose::kControl, {0, 1}, "all").value();
  TROUPE_CHECK_OK(network.Connect(cluster.addresses(), std::chrono::seconds(10)));
  return [tensor, all](const model::CollectiveGroup& group) -> Communicator* {
    if (group.kind == model::CollectiveGroup::Kind::kAll) return all;
    return group == model::GroupOf(model::Axis::kTensor) ? tensor : nullptr;
  };
}

TEST(CpuCollectives, TwoTensorRanksMakeTheLossAndTheNormOfOne) {
  for (const model::DType compute : {model::DType::kFloat32, model::DType::kBFloat16}) {
    const double tolerance = compute == model::DType::kFloat32 ? 1e-5 : 0.02;
    auto single_backend = CpuBackend::Make({1, std::nullopt}).value();
    ProgramRun single(*single_backend, TensorOptions(compute, 1, 0), 5);
    const std::vector<double> loss = single.Train(single.MakeMicrobatch(9), true);
    const std::vector<double> control = single.Update(1e-2, 1);

    LoopbackCluster cluster(kRanks);
    std::vector<double> losses[kRanks], controls[kRanks];
    cluster.Run([&](int rank) {
      auto backend = CpuBackend::Make({1, std::nullopt}).value();
      ProgramRun run(*backend, TensorOptions(compute, kRanks, rank), 5, false,
                     Groups(cluster, rank));
      losses[rank] = run.Train(run.MakeMicrobatch(9), true);
      controls[rank] = run.Update(1e-2, 1);
    });
    EXPECT_EQ(losses[0], losses[1]);
    EXPECT_EQ(controls[0], controls[1]);
    EXPECT_LE(RelativeError(losses[0], loss), tolerance);
    EXPECT_NEAR(controls[0][model::kLaneSumOfSquares], control[model::kLaneSumOfSquares],
                2 * tolerance * control[model::kLaneSumOfSquares]);
    EXPECT_EQ(controls[0][model::kLaneWeight], control[model::kLaneWeight]);
  }
}

// One rank's program of a reduce-scatter over data_shard and the gather of what it gives.
struct ScatterAndGather {
  model::Program program;
  model::ValueId whole, block, gathered;
};

ScatterAndGather MakeScatterAndGather(model::DType dtype, int64_t rows, int ranks, int rank,
                                      bool in_place) {
  using model::OpKind;
  ScatterAndGather made;
  model::Program& program = made.program;
  program.mesh.degrees[model::Axis::kDataShard] = ranks;
  program.mesh.coordinates[model::Axis::kDataShard] = rank;
  model::ValueType type = {dtype, {{"rows", rows, rows}, {"columns", 5, 5}}, {}, {}};
  type.placement[model::Axis::kDataShard] = model::PartialSum();
  const auto append = [&program](const char* name, model::ValueType made_type) {
    return model::AppendValue(program, name, model::Role::kActivation, 0, std::move(made_type));
  };
  made.whole = append("whole", type);
  model::CollectiveAttributes attributes = {model::GroupOf(model::Axis::kDataShard),
                                            model::CollectivePurpose::kGradient};
  const auto block =
      model::InferTypes(program, OpKind::kReduceScatter, attributes, {&made.whole, 1});
  made.block = append("block", (*block)[0]);
  if (in_place) {
    program.values[made.block].view_of = made.whole;
    program.values[made.block].view_offset = 5 * model::BalancedRange(rows, ranks, rank).begin;
  }
  model::CollectiveAttributes gather = attributes;
  gather.extent = rows;
  const auto gathered = model::InferTypes(program, OpKind::kAllGather, gather, {&made.block, 1});
  TROUPE_CHECK_OK(gathered.status());
  made.gathered = append("gathered", (*gathered)[0]);
  program.chunks.resize(1);
  program.ops.resize(1);
  program.ops[0].resize(model::kNumPieces);
  program.ops[0][static_cast<int>(model::Piece::kForward)] = {
      {OpKind::kReduceScatter, attributes, {made.whole}, {made.block}},
      {OpKind::kAllGather, gather, {made.block}, {made.gathered}}};
  return made;
}

TEST(CpuCollectives, ScatteredSumsGatheredAgainAreTheSum) {
  constexpr int kThree = 3;
  const auto summand = [](int rank, int64_t i) { return static_cast<double>((i * 7 + rank) % 5); };
  for (const int64_t rows : {1, 2, 3, 7, 64}) {
    for (const model::DType dtype : {model::DType::kFloat32, model::DType::kBFloat16}) {
      for (const bool in_place : {false, true}) {
        for (const bool reference : {false, true}) {
          LoopbackCluster cluster(kThree);
          cluster.Run([&](int rank) {
            ScatterAndGather made = MakeScatterAndGather(dtype, rows, kThree, rank, in_place);
            CollectiveNetwork& network = cluster.network(rank);
            Communicator* const shards =
                network.MakeCommunicator("data_shard", Purpose::kGradient, {0, 1, 2}, "shards")
                    .value();
            TROUPE_CHECK_OK(network.Connect(cluster.addresses(), std::chrono::seconds(10)));
            auto cpu = CpuBackend::Make({1, std::nullopt}).value();
            ReferenceBackend float64;
            Backend& backend = reference ? static_cast<Backend&>(float64) : *cpu;
            const model::MemoryPlan plan = PlainPlan(made.program);
            auto executable = backend
                                  .Prepare(made.program, plan,
                                           [&](const model::CollectiveGroup&) { return shards; })
                                  .value();
            std::vector<double> numbers;
            for (int64_t i = 0; i < 5 * rows; ++i) numbers.push_back(summand(rank, i));
            WriteNumbers(*executable, made.program, made.whole, numbers);
            TROUPE_CHECK_OK(executable->Run(0, model::Piece::kForward, 0, {}));
            const auto sum = ReadNumbers(*executable, made.program, made.gathered);
            for (int64_t i = 0; i < 5 * rows; ++i) {
              EXPECT_EQ(sum[i], summand(0, i) + summand(1, i) + summand(2, i))
                  << "element " << i << " of rank " << rank;
            }
            if (!in_place) {
              EXPECT_EQ(ReadNumbers(*executable, made.program, made.whole), numbers)
                  << "the input is kept";
            }
          });
        }
      }
    }
  }
}

TEST(CpuCollectives, AFailedCollectiveNamesItsOperation) {
  LoopbackCluster cluster(kRanks);
  Status statuses[kRanks];
  cluster.Run([&](int rank) {
    auto backend = CpuBackend::Make({1, std::nullopt}).value();
    ProgramRun run(*backend, TensorOptions(model::DType::kFloat32, kRanks, rank), 5, false,
                   Groups(cluster, rank));
    run.MakeMicrobatch(1);
    cluster.network(rank).Abort(Cancelled("the test aborts"));
    statuses[rank] = run.executable().Run(0, model::Piece::kForward, 0, {});
  });
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), StatusCode::kCancelled);
    EXPECT_NE(Message(status).find("all_reduce"), std::string_view::npos) << status;
  }
}

}  // namespace
}  // namespace troupe::kernels
