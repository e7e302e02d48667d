// Programs of several ranks over loopback: collectives reach the right groups, and say who failed.
#include <gtest/gtest.h>

#include <memory>
#include <string>
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

// Scattered within runs of two of four ranks, then across them, and gathered back across and within: block by block
// what the four ranks' tensors sum to.
TEST(CpuCollectives, SumsScatteredWithinRunsAndAcrossThemAreGatheredAgain) {
  using model::OpKind;
  constexpr int kFour = 4, kRun = 2;
  const auto element = [](int rank, int64_t i) { return static_cast<double>((i * 7 + rank) % 5); };
  const auto sum = [&](int64_t i) {
    return element(0, i) + element(1, i) + element(2, i) + element(3, i);
  };
  const model::CollectiveGroup shards = model::GroupOf(model::Axis::kDataShard);
  const model::CollectiveGroup within = model::WithinRun(shards, kRun);
  const model::CollectiveGroup across = model::AcrossRuns(shards, kRun);
  for (const int64_t rows : {1, 3, 7, 64}) {
    for (const bool reference : {false, true}) {
      LoopbackCluster cluster(kFour);
      cluster.Run([&](int rank) {
        model::Program program;
        program.mesh.degrees[model::Axis::kDataShard] = kFour;
        program.mesh.coordinates[model::Axis::kDataShard] = rank;
        program.chunks.resize(1);
        program.ops.resize(1);
        program.ops[0].resize(model::kNumPieces);
        model::ValueType type = {
            model::DType::kFloat32, {{"rows", rows, rows}, {"columns", 5, 5}}, {}, {}};
        type.placement[model::Axis::kDataShard] = model::PartialSum();
        std::vector<model::ValueId> values = {
            model::AppendValue(program, "whole", model::Role::kActivation, 0, type)};
        const auto then = [&](OpKind kind, const model::CollectiveGroup& group, int64_t extent) {
          model::CollectiveAttributes attributes = {group, model::CollectivePurpose::kGradient};
          attributes.extent = extent;
          auto types = model::InferTypes(program, kind, attributes, {&values.back(), 1});
          TROUPE_CHECK_OK(types.status());
          const model::ValueId made =
              model::AppendValue(program, "next", model::Role::kActivation, 0, (*types)[0]);
          program.ops[0][static_cast<int>(model::Piece::kForward)].push_back(
              {kind, attributes, {values.back()}, {made}});
          values.push_back(made);
        };
        then(OpKind::kReduceScatter, within, 0);
        then(OpKind::kReduceScatter, across, 0);
        then(OpKind::kAllGather, across, program.value(values[1]).dims[0].local);
        then(OpKind::kAllGather, within, rows);

        CollectiveNetwork& network = cluster.network(rank);
        const int first = rank / kRun * kRun, place = rank % kRun;
        const auto communicator = [&](const std::vector<int>& ranks, const std::string& name) {
          return network.MakeCommunicator("data_shard", Purpose::kGradient, ranks, name).value();
        };
        Communicator* const run = communicator({first, first + 1}, fmt::format("run {}", first));
        Communicator* const place_of_runs =
            communicator({place, place + kRun}, fmt::format("place {}", place));
        TROUPE_CHECK_OK(network.Connect(cluster.addresses(), std::chrono::seconds(10)));
        auto cpu = CpuBackend::Make({1, std::nullopt}).value();
        ReferenceBackend float64;
        Backend& backend = reference ? static_cast<Backend&>(float64) : *cpu;
        const model::MemoryPlan plan = PlainPlan(program);
        auto executable =
            backend
                .Prepare(program, plan,
                         [&](const model::CollectiveGroup& group) {
                           return group == within ? run : group == across ? place_of_runs : nullptr;
                         })
                .value();
        std::vector<double> numbers;
        for (int64_t i = 0; i < 5 * rows; ++i) numbers.push_back(element(rank, i));
        WriteNumbers(*executable, program, values[0], numbers);
        TROUPE_CHECK_OK(executable->Run(0, model::Piece::kForward, 0, {}));
        const model::Range block = model::BalancedRange(rows, kRun, place);
        const model::Range part = model::BalancedRange(block.size(), kFour / kRun, rank / kRun);
        const auto mine = ReadNumbers(*executable, program, values[2]);
        ASSERT_EQ(static_cast<int64_t>(mine.size()), 5 * part.size());
        for (int64_t i = 0; i < 5 * part.size(); ++i)
          EXPECT_EQ(mine[i], sum(5 * (block.begin + part.begin) + i)) << i;
        const auto all = ReadNumbers(*executable, program, values[4]);
        for (int64_t i = 0; i < 5 * rows; ++i) EXPECT_EQ(all[i], sum(i)) << i;
      });
    }
  }
}

// Rows of three samples of 12 tokens over three ranks, columns of q (6 heads), k and v (3 each): every
// element is its own place, so that where it comes to lie shows.
TEST(CpuCollectives, RowsExchangedAgainstHeadsLieWhereTheyBelongAndComeBack) {
  constexpr int kThree = 3;
  constexpr int64_t kSamples = 3, kTokens = 12, kHead = 5, kWidth = (6 + 3 + 3) * kHead;
  const auto place = [](int64_t row, int64_t column) {
    return static_cast<double>((row * kWidth + column) % 251);  // exact in bfloat16
  };
  const auto tokens_of = [](int rank) {
    std::vector<int64_t> rows;
    for (int64_t sample = 0; sample < kSamples; ++sample) {
      for (const int chunk : {rank, 5 - rank}) {
        for (const int t : {0, 1}) rows.push_back(sample * kTokens + chunk * 2 + t);
      }
    }
    return rows;
  };
  const auto columns_of = [](int rank) {
    std::vector<int64_t> columns;
    for (const auto& [begin, heads] : {std::pair(0, 2), std::pair(6, 1), std::pair(9, 1)}) {
      for (int64_t c = 0; c < heads * kHead; ++c)
        columns.push_back((begin + rank * heads) * kHead + c);
    }
    return columns;
  };
  for (const model::DType dtype : {model::DType::kFloat32, model::DType::kBFloat16}) {
    for (const bool reference : {false, true}) {
      LoopbackCluster cluster(kThree);
      cluster.Run([&](int rank) {
        model::Program program;
        program.mesh.degrees[model::Axis::kContext] = kThree;
        program.mesh.coordinates[model::Axis::kContext] = rank;
        const int64_t all_rows = kSamples * kTokens;
        model::ValueType type = {dtype,
                                 {{"rows", all_rows, all_rows / kThree}, {"qkv", kWidth, kWidth}},
                                 {},
                                 {{"q", 30, 30}, {"k", 15, 15}, {"v", 15, 15}}};
        type.placement[model::Axis::kContext] = model::Shard(0, model::ShardHow::kHeadTail);
        model::CollectiveAttributes there = {model::GroupOf(model::Axis::kContext),
                                             model::CollectivePurpose::kContext};
        there.exchange = {kSamples, kHead, false};
        model::CollectiveAttributes back = there;
        back.exchange.to_rows = true;
        const auto append = [&program](const char* name, const model::ValueType& made) {
          return model::AppendValue(program, name, model::Role::kActivation, 0, made);
        };
        const model::ValueId x = append("x", type);
        const auto heads = model::InferTypes(program, model::OpKind::kExchangeHeads, there, {&x, 1});
        TROUPE_CHECK_OK(heads.status());
        const model::ValueId y = append("y", (*heads)[0]);
        const model::ValueId z = append("z", type);
        program.chunks.resize(1);
        program.ops.resize(1);
        program.ops[0].resize(model::kNumPieces);
        program.ops[0][static_cast<int>(model::Piece::kForward)] = {
            {model::OpKind::kExchangeHeads, there, {x}, {y}}, {model::OpKind::kExchangeHeads, back, {y}, {z}}};
        CollectiveNetwork& network = cluster.network(rank);
        Communicator* const context =
            network.MakeCommunicator("context", Purpose::kContext, {0, 1, 2}, "context").value();
        TROUPE_CHECK_OK(network.Connect(cluster.addresses(), std::chrono::seconds(10)));
        auto cpu = CpuBackend::Make({1, std::nullopt}).value();
        ReferenceBackend float64;
        Backend& backend = reference ? static_cast<Backend&>(float64) : *cpu;
        const model::MemoryPlan plan = PlainPlan(program);
        auto executable =
            backend.Prepare(program, plan, [&](const model::CollectiveGroup&) { return context; })
                .value();
        std::vector<double> given, due;
        for (const int64_t row : tokens_of(rank)) {
          for (int64_t column = 0; column < kWidth; ++column) given.push_back(place(row, column));
        }
        for (int64_t row = 0; row < all_rows; ++row) {
          for (const int64_t column : columns_of(rank)) due.push_back(place(row, column));
        }
        WriteNumbers(*executable, program, x, given);
        TROUPE_CHECK_OK(executable->Run(0, model::Piece::kForward, 0, {}));
        EXPECT_EQ(ReadNumbers(*executable, program, y), due);
        EXPECT_EQ(ReadNumbers(*executable, program, z), given);
      });
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
