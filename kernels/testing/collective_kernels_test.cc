// Collectives of any backend with ranks as threads: reductions, gathers and exchanges of even and
// uneven blocks, synchronous and asynchronous.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/backend/plain_program.h"
#include "kernels/testing/collective_test.h"
#include "kernels/testing/testing.h"
#include "model/program/builder.h"
#include "model/program/control_word.h"
#include "model/program/program.h"

namespace troupe::kernels {
namespace {

using model::DType;
using model::OpKind;
using Numbers = std::vector<double>;

constexpr int kThree = 3;

// Integers whose sums over a few ranks are exact in bfloat16.
double Summand(int rank, int64_t i) { return static_cast<double>((i * 7 + rank) % 5); }

Numbers Summands(int rank, int64_t count) {
  Numbers numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(Summand(rank, i));
  return numbers;
}

model::MeshView MeshOf(model::Axis axis, int ranks, int rank) {
  model::MeshView mesh;
  mesh.degrees[axis] = ranks;
  mesh.coordinates[axis] = rank;
  return mesh;
}

const model::CollectiveAttributes kOverTensor = {model::GroupOf(model::Axis::kTensor),
                                                 model::CollectivePurpose::kTensor};

// Runs one operation per rank, with rank r's coordinate on the tensor axis of `mesh`, and passes
// its result on that rank to `expect`.
void RunOnRanks(int ranks, const MakeBackend& make, const std::function<TestOp(int rank)>& op,
                const std::function<void(int rank, const TestResult&)>& expect) {
  RunRanks(ranks, make, [&](int rank, Backend& backend, const FindCommunicator& groups) {
    TestOp own = op(rank);
    own.mesh = MeshOf(model::Axis::kTensor, ranks, rank);
    expect(rank, RunOp(backend, own, {}, groups));
  });
}

TEST_P(CollectiveTest, AllReduceSumsEveryDtypeOnAllRanks) {
  for (const int ranks : {2, 3}) {
    for (const int64_t count : {1, 7, 1000}) {
      for (const DType dtype : {compute(), DType::kFloat64}) {
        for (const int view : {-1, 0}) {  // also in place
          RunOnRanks(
              ranks, GetParam().make,
              [&](int rank) -> TestOp {
                return {.kind = OpKind::kAllReduce,
                        .attributes = model::AllReduceAttributes{kOverTensor},
                        .inputs = {{dtype, {count}, Summands(rank, count)}},
                        .outputs = {{dtype, {count}, {}}},
                        .view_of_input = view};
              },
              [&](int rank, const TestResult& result) {
                for (int64_t i = 0; i < count; ++i) {
                  double sum = 0;
                  for (int r = 0; r < ranks; ++r) sum += Summand(r, i);
                  ASSERT_EQ(result.outputs[0][i], sum) << "element " << i << " of rank " << rank;
                }
                if (view < 0) {
                  EXPECT_EQ(result.inputs[0], Summands(rank, count)) << "the input is kept";
                }
              });
        }
      }
    }
  }
}

// Normally distributed numbers for each rank.
std::vector<Numbers> NormalsOfRanks(TestRandom& random, int64_t count) {
  std::vector<Numbers> numbers;
  for (int rank = 0; rank < kThree; ++rank) numbers.push_back(random.Normals(count));
  return numbers;
}
// Expects the sums of the numbers from index `first` on, with terms rounded to bfloat16. The
// tolerance is a few units in the last place of the sum of the terms' magnitudes, which stays above
// zero if the terms cancel.
void ExpectPackedSums(const Numbers& actual, const std::vector<Numbers>& numbers,
                      size_t first = 0) {
  for (size_t i = 0; i < actual.size(); ++i) {
    double sum = 0, magnitude = 0;
    for (const Numbers& of_rank : numbers) {
      sum += of_rank[first + i];
      magnitude += std::abs(of_rank[first + i]);
    }
    EXPECT_NEAR(actual[i], sum, 0x1p-7 * magnitude)
        << i << " of " << actual.size() << " from " << first;
  }
}

TEST_P(CollectiveTest, SumsWhoseTermsTravelAsBfloat16AreTheSameOnAllRanks) {
  TestRandom random;
  for (const int64_t count : {2, 7, 1000, 1152}) {
    const std::vector<Numbers> numbers = NormalsOfRanks(random, count);
    Numbers results[kThree];
    RunOnRanks(
        kThree, GetParam().make,
        [&](int rank) -> TestOp {
          model::AllReduceAttributes attributes = {kOverTensor};
          attributes.wire = DType::kBFloat16;
          return {.kind = OpKind::kAllReduce,
                  .attributes = attributes,
                  .inputs = {{DType::kFloat32, {count}, numbers[static_cast<size_t>(rank)]}},
                  .outputs = {{DType::kFloat32, {count}, {}}}};
        },
        [&](int rank, const TestResult& result) { results[rank] = result.outputs[0]; });
    for (int rank = 0; rank < kThree; ++rank) {
      EXPECT_EQ(results[rank], results[0]) << count << " elements, rank " << rank;
    }
    ExpectPackedSums(results[0], numbers);
  }
}

TEST_P(CollectiveTest, BlocksOfSumsWhoseTermsTravelAsBfloat16AreScattered) {
  TestRandom random;
  constexpr int64_t kColumns = 16;
  for (const int64_t rows : {1, 4, 6, 64}) {
    const std::vector<Numbers> numbers = NormalsOfRanks(random, rows * kColumns);
    RunOnRanks(
        kThree, GetParam().make,
        [&](int rank) -> TestOp {
          model::ReduceScatterAttributes attributes = {kOverTensor};
          attributes.wire = DType::kBFloat16;
          return {
              .kind = OpKind::kReduceScatter,
              .attributes = attributes,
              .inputs = {{DType::kFloat32, {rows, kColumns}, numbers[static_cast<size_t>(rank)]}},
              .outputs = {{DType::kFloat32,
                           {model::BalancedRange(rows, kThree, rank).size(), kColumns},
                           {}}}};
        },
        [&](int rank, const TestResult& result) {
          const model::Range block = model::BalancedRange(rows, kThree, rank);
          ASSERT_EQ(static_cast<int64_t>(result.outputs[0].size()), block.size() * kColumns);
          ExpectPackedSums(result.outputs[0], numbers, static_cast<size_t>(block.begin * kColumns));
        });
  }
}

TEST_P(CollectiveTest, AllReduceFindsTheGreatest) {
  constexpr int64_t kCount = 33;
  const auto number = [](int rank, int64_t i) {
    return static_cast<double>((i + rank) % kThree) - 5;
  };
  RunOnRanks(
      kThree, GetParam().make,
      [&](int rank) -> TestOp {
        const model::AllReduceAttributes attributes = {kOverTensor, model::ReduceKind::kMax};
        Numbers numbers;
        for (int64_t i = 0; i < kCount; ++i) numbers.push_back(number(rank, i));
        return {.kind = OpKind::kAllReduce,
                .attributes = attributes,
                .inputs = {{DType::kFloat32, {kCount}, numbers}},
                .outputs = {{DType::kFloat32, {kCount}, {}}}};
      },
      [&](int, const TestResult& result) { EXPECT_EQ(result.outputs[0], Numbers(kCount, -3)); });
}

TEST_P(CollectiveTest, AShiftMovesEveryRanksBlockAlongTheRing) {
  constexpr int64_t kRows = 5, kColumns = 7;
  for (const int shift : {1, 2, -1}) {
    RunOnRanks(
        kThree, GetParam().make,
        [&](int rank) -> TestOp {
          const model::ShiftAttributes attributes = {kOverTensor, shift};
          return {.kind = OpKind::kShift,
                  .attributes = attributes,
                  .inputs = {{compute(), {kRows, kColumns}, Summands(rank, kRows * kColumns)}},
                  .outputs = {{compute(), {kRows, kColumns}, {}}}};
        },
        [&](int rank, const TestResult& result) {
          const int from = (rank - shift + kThree) % kThree;
          EXPECT_EQ(result.outputs[0], Summands(from, kRows * kColumns)) << "shift " << shift;
        });
  }
}

TEST_P(CollectiveTest, AllToAllOfEqualBlocksTransposesThem) {
  constexpr int64_t kBlock = 4;
  const auto number = [](int from, int64_t i) {
    return static_cast<double>(int64_t{100} * from + i);
  };
  RunOnRanks(
      kThree, GetParam().make,
      [&](int rank) -> TestOp {
        Numbers counts;
        for (int64_t i = 0; i < kThree * kBlock; ++i) counts.push_back(number(rank, i));
        return {.kind = OpKind::kAllToAll,
                .attributes = model::RoutedRowsAttributes{kOverTensor},
                .inputs = {{DType::kInt32, {kThree * kBlock}, counts}},
                .outputs = {{DType::kInt32, {kThree * kBlock}, {}}}};
      },
      [&](int rank, const TestResult& result) {
        for (int64_t i = 0; i < kThree * kBlock; ++i) {
          EXPECT_EQ(result.outputs[0][i],
                    number(static_cast<int>(i / kBlock), rank * kBlock + i % kBlock));
        }
      });
}

TEST_P(CollectiveTest, TheControlWordIsReducedLaneByLane) {
  const auto lane_of = [](int rank, int lane) {
    return static_cast<double>((lane + 2 * rank) % kThree);
  };
  RunOnRanks(
      kThree, GetParam().make,
      [&](int rank) -> TestOp {
        Numbers lanes;
        for (int lane = 0; lane < model::kControlLanes; ++lane)
          lanes.push_back(lane_of(rank, lane));
        return {.kind = OpKind::kControlReduce,
                .attributes = model::NoAttributes(),
                .inputs = {{DType::kFloat64, {model::kControlLanes}, lanes}},
                .outputs = {}};
      },
      [&](int, const TestResult& result) {
        for (int lane = 0; lane < model::kControlLanes; ++lane) {
          // The three ranks hold 0, 1 and 2 in a different order in each lane.
          const double due = lane <= model::kLastSum ? 3 : lane <= model::kLastMax ? 2 : 0;
          EXPECT_EQ(result.inputs[0][lane], due) << "lane " << lane;
        }
      });
}

// Numbers of two ranks in one lane of the control word.
using LanePair = std::array<double, 2>;

// Bit for bit, but NaN has no bits of its own.
MATCHER_P(IsExactly, number, fmt::format("is exactly {}", number)) {
  return std::isnan(number) ? std::isnan(arg)
                            : std::bit_cast<uint64_t>(arg) == std::bit_cast<uint64_t>(number);
}

// Tickets and attempts are integers of up to 53 bits, and sums of squares exceed the largest
// float32 long before float64's.
TEST_P(CollectiveTest, TheControlWordIsReducedAsFloat64) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kMost = std::numeric_limits<double>::max();
  std::vector<LanePair> pairs = {
      {0x1p53 - 1, 0}, {0x1p53 - 1, 0x1p53 - 3}, {1.0 / 3, 1.0 / 7}, {0.1, -1e17},
      {1e300, 1e-300}, {1e300, 1e300},           {1e-300, 1e-301},   {-3.5e38, 1},
      {kMost, kMost},  {kInfinity, 1},           {-kInfinity, 1e300}};
  // Only sums have a defined result for NaN.
  const size_t ordered = pairs.size();
  pairs.push_back({std::numeric_limits<double>::quiet_NaN(), 1});
  pairs.push_back({kInfinity, -kInfinity});
  for (size_t shift = 0; shift < pairs.size(); ++shift) {
    const auto pair_of = [&](int lane) {
      return pairs[(static_cast<size_t>(lane) + shift) %
                   (lane <= model::kLastSum ? pairs.size() : ordered)];
    };
    RunOnRanks(
        2, GetParam().make,
        [&](int rank) -> TestOp {
          Numbers lanes;
          for (int lane = 0; lane < model::kControlLanes; ++lane)
            lanes.push_back(pair_of(lane)[static_cast<size_t>(rank)]);
          return {.kind = OpKind::kControlReduce,
                  .attributes = model::NoAttributes(),
                  .inputs = {{DType::kFloat64, {model::kControlLanes}, lanes}},
                  .outputs = {}};
        },
        [&](int, const TestResult& result) {
          for (int lane = 0; lane < model::kControlLanes; ++lane) {
            const auto [a, b] = pair_of(lane);
            const double due = lane <= model::kLastSum   ? a + b
                               : lane <= model::kLastMax ? std::max(a, b)
                                                         : std::min(a, b);
            EXPECT_THAT(result.inputs[0][static_cast<size_t>(lane)], IsExactly(due))
                << "lane " << lane << " of " << a << " and " << b;
          }
        });
  }
}

// The collective starts after its inputs are computed; computation between its start and its wait
// does not disturb it.
TEST_P(CollectiveTest, AnAsynchronousSumIsThereOnceItIsWaitedFor) {
  constexpr int64_t kRows = 6, kColumns = 5, kCount = kRows * kColumns;
  RunRanks(
      kThree, GetParam().make, [&](int rank, Backend& backend, const FindCommunicator& groups) {
        model::Program program;
        program.mesh = MeshOf(model::Axis::kTensor, kThree, rank);
        program.chunks.resize(1);
        program.ops.resize(1);
        program.ops[0].resize(model::kNumPieces);
        const model::ValueType type = {
            compute(), {{"rows", kRows, kRows}, {"columns", kColumns, kColumns}}, {}, {}};
        const auto append = [&](const char* name) {
          return model::AppendValue(program, name, model::Role::kActivation, 0, type);
        };
        const model::ValueId x = append("x"), twice = append("twice"), sum = append("sum"),
                             thrice = append("thrice"), y = append("y");
        program.ops[0][static_cast<int>(model::Piece::kForward)] = {
            {OpKind::kAdd, model::NoAttributes(), {x, x}, {twice}},
            {.kind = OpKind::kAllReduce,
             .attributes = model::AllReduceAttributes{kOverTensor},
             .inputs = {twice},
             .outputs = {sum},
             .asynchronous = true},
            {OpKind::kAdd, model::NoAttributes(), {x, twice}, {thrice}},
            {OpKind::kWait, model::NoAttributes(), {sum}, {}},
            {OpKind::kAdd, model::NoAttributes(), {sum, thrice}, {y}}};
        const model::MemoryPlan plan = PlainPlan(program);
        const std::unique_ptr<Executable> executable = PrepareRank(backend, program, plan, groups);
        for (int run = 0; run < 3; ++run) {
          const auto number = [&](int r, int64_t i) { return Summand(r + run, i); };
          Numbers own, due;
          for (int64_t i = 0; i < kCount; ++i) {
            own.push_back(number(rank, i));
            due.push_back(2 * (number(0, i) + number(1, i) + number(2, i)) + 3 * number(rank, i));
          }
          WriteNumbers(*executable, program, x, own);
          TROUPE_CHECK_OK(executable->Run(0, model::Piece::kForward, 0, {}));
          EXPECT_EQ(ReadNumbers(*executable, program, y), due) << "run " << run;
        }
      });
}

// One rank's program: a reduce-scatter over data_shard, then an all-gather of its result.
struct ScatterAndGather {
  model::Program program;
  model::ValueId whole, block, gathered;
};

ScatterAndGather MakeScatterAndGather(model::DType dtype, int64_t rows, int ranks, int rank,
                                      bool in_place) {
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
  const model::CollectiveAttributes over = {model::GroupOf(model::Axis::kDataShard),
                                            model::CollectivePurpose::kGradient};
  const model::ReduceScatterAttributes scatter = {over};
  const auto block = model::InferTypes(program, OpKind::kReduceScatter, scatter, {&made.whole, 1});
  made.block = append("block", (*block)[0]);
  if (in_place) {
    program.values[made.block].view_of = made.whole;
    program.values[made.block].view_offset = 5 * model::BalancedRange(rows, ranks, rank).begin;
  }
  model::AllGatherAttributes gather = {over};
  gather.extent = rows;
  const auto gathered = model::InferTypes(program, OpKind::kAllGather, gather, {&made.block, 1});
  TROUPE_CHECK_OK(gathered.status());
  made.gathered = append("gathered", (*gathered)[0]);
  program.chunks.resize(1);
  program.ops.resize(1);
  program.ops[0].resize(model::kNumPieces);
  program.ops[0][static_cast<int>(model::Piece::kForward)] = {
      {OpKind::kReduceScatter, scatter, {made.whole}, {made.block}},
      {OpKind::kAllGather, gather, {made.block}, {made.gathered}}};
  return made;
}

TEST_P(CollectiveTest, ScatteredSumsGatheredAgainAreTheSum) {
  for (const int64_t rows : {1, 2, 3, 7, 64}) {
    for (const bool in_place : {false, true}) {
      const MakeGroups make_groups = [](CollectiveNetwork& network, int) -> FindCommunicator {
        Communicator* const shards =
            network.MakeCommunicator("data_shard", Purpose::kGradient, {0, 1, 2}, "shards").value();
        return [shards](const model::CollectiveGroup&) { return shards; };
      };
      RunRanks(kThree, GetParam().make, make_groups,
               [&](int rank, Backend& backend, const FindCommunicator& groups) {
                 const ScatterAndGather made =
                     MakeScatterAndGather(compute(), rows, kThree, rank, in_place);
                 const model::MemoryPlan plan = PlainPlan(made.program);
                 const std::unique_ptr<Executable> executable =
                     PrepareRank(backend, made.program, plan, groups);
                 const Numbers numbers = Summands(rank, 5 * rows);
                 WriteNumbers(*executable, made.program, made.whole, numbers);
                 TROUPE_CHECK_OK(executable->Run(0, model::Piece::kForward, 0, {}));
                 const Numbers sum = ReadNumbers(*executable, made.program, made.gathered);
                 for (int64_t i = 0; i < 5 * rows; ++i) {
                   EXPECT_EQ(sum[i], Summand(0, i) + Summand(1, i) + Summand(2, i))
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

constexpr int kFour = 4, kRun = 2;

// The groups of runs of two of four ranks, and of the ranks at the same place of all runs.
model::CollectiveGroup WithinRunsOfTwo() {
  return model::WithinRun(model::GroupOf(model::Axis::kDataShard), kRun);
}
model::CollectiveGroup AcrossRunsOfTwo() {
  return model::AcrossRuns(model::GroupOf(model::Axis::kDataShard), kRun);
}

// A hierarchical reduce-scatter (within runs, then across them) and all-gather (across, then
// within) of rows.
struct SumOverRuns {
  model::Program program;
  std::vector<model::ValueId> values;  // the whole, a block, a part of it, the block, the whole
};

SumOverRuns MakeSumOverRuns(int64_t rows, int rank) {
  SumOverRuns made;
  model::Program& program = made.program;
  std::vector<model::ValueId>& values = made.values;
  program.mesh = MeshOf(model::Axis::kDataShard, kFour, rank);
  program.chunks.resize(1);
  program.ops.resize(1);
  program.ops[0].resize(model::kNumPieces);
  model::ValueType type = {DType::kFloat32, {{"rows", rows, rows}, {"columns", 5, 5}}, {}, {}};
  type.placement[model::Axis::kDataShard] = model::PartialSum();
  values = {model::AppendValue(program, "whole", model::Role::kActivation, 0, type)};
  const auto then = [&](OpKind kind, const model::Attributes& attributes) {
    auto types = model::InferTypes(program, kind, attributes, {&values.back(), 1});
    TROUPE_CHECK_OK(types.status());
    const model::ValueId next =
        model::AppendValue(program, "next", model::Role::kActivation, 0, (*types)[0]);
    program.ops[0][static_cast<int>(model::Piece::kForward)].push_back(
        {kind, attributes, {values.back()}, {next}});
    values.push_back(next);
  };
  const auto over = [](const model::CollectiveGroup& group) -> model::CollectiveAttributes {
    return {group, model::CollectivePurpose::kGradient};
  };
  const auto gather = [&](const model::CollectiveGroup& group, int64_t extent) {
    model::AllGatherAttributes attributes = {over(group)};
    attributes.extent = extent;
    then(OpKind::kAllGather, attributes);
  };
  then(OpKind::kReduceScatter, model::ReduceScatterAttributes{over(WithinRunsOfTwo())});
  then(OpKind::kReduceScatter, model::ReduceScatterAttributes{over(AcrossRunsOfTwo())});
  gather(AcrossRunsOfTwo(), program.value(values[1]).dims[0].local);
  gather(WithinRunsOfTwo(), rows);
  return made;
}

// Each part must be that of the four ranks' sum, and all parts together the sum.
TEST_P(CollectiveTest, SumsScatteredWithinRunsAndAcrossThemAreGatheredAgain) {
  const auto sum = [](int64_t i) {
    return Summand(0, i) + Summand(1, i) + Summand(2, i) + Summand(3, i);
  };
  const MakeGroups make_groups = [](CollectiveNetwork& network, int rank) -> FindCommunicator {
    const int first = rank / kRun * kRun, place = rank % kRun;
    const auto communicator = [&](const std::vector<int>& ranks, const std::string& name) {
      return network.MakeCommunicator("data_shard", Purpose::kGradient, ranks, name).value();
    };
    Communicator* const run = communicator({first, first + 1}, fmt::format("run {}", first));
    Communicator* const place_of_runs =
        communicator({place, place + kRun}, fmt::format("place {}", place));
    return [=](const model::CollectiveGroup& group) {
      return group == WithinRunsOfTwo()   ? run
             : group == AcrossRunsOfTwo() ? place_of_runs
                                          : nullptr;
    };
  };
  for (const int64_t rows : {1, 3, 7, 64}) {
    RunRanks(kFour, GetParam().make, make_groups,
             [&](int rank, Backend& backend, const FindCommunicator& groups) {
               const SumOverRuns made = MakeSumOverRuns(rows, rank);
               const model::MemoryPlan plan = PlainPlan(made.program);
               const std::unique_ptr<Executable> executable =
                   PrepareRank(backend, made.program, plan, groups);
               WriteNumbers(*executable, made.program, made.values[0], Summands(rank, 5 * rows));
               TROUPE_CHECK_OK(executable->Run(0, model::Piece::kForward, 0, {}));
               const model::Range block = model::BalancedRange(rows, kRun, rank % kRun);
               const model::Range part =
                   model::BalancedRange(block.size(), kFour / kRun, rank / kRun);
               const Numbers mine = ReadNumbers(*executable, made.program, made.values[2]);
               ASSERT_EQ(static_cast<int64_t>(mine.size()), 5 * part.size());
               for (int64_t i = 0; i < 5 * part.size(); ++i)
                 EXPECT_EQ(mine[i], sum(5 * (block.begin + part.begin) + i)) << i;
               const Numbers all = ReadNumbers(*executable, made.program, made.values[4]);
               for (int64_t i = 0; i < 5 * rows; ++i) EXPECT_EQ(all[i], sum(i)) << i;
             });
  }
}

}  // namespace
}  // namespace troupe::kernels
