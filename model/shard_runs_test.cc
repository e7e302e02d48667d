// Parameters sharded over data_shard when that axis is divided into runs of neighbours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "model/build.h"
#include "model/program/builder.h"
#include "model/program/memory_plan.h"
#include "model/program/op_rules.h"
#include "model/testing.h"

namespace troupe::model {
namespace {

using GroupPart = CollectiveGroup::Part;

constexpr int kShards = 6, kRun = 3, kExperts = 2;

// A rank of data_shard 6 × expert 2 × tensor 2.
MeshView At(int shard, int expert, int tensor = 0) {
  MeshView mesh;
  mesh.degrees[Axis::kDataShard] = kShards;
  mesh.degrees[Axis::kExpert] = kExperts;
  mesh.degrees[Axis::kTensor] = 2;
  mesh.coordinates[Axis::kDataShard] = shard;
  mesh.coordinates[Axis::kExpert] = expert;
  mesh.coordinates[Axis::kTensor] = tensor;
  return mesh;
}

const CollectiveGroup kWithin = WithinRun(ShardGroup(), kRun);
const CollectiveGroup kAcross = AcrossRuns(GroupOf(Axis::kDataShard), kRun);

TEST(ShardRuns, MembersOfAGroupAreNumberedInTheOrderOfTheirRanks) {
  for (const CollectiveGroup& group : {kWithin, kAcross, ShardGroup()}) {
    for (int shard = 0; shard < kShards; ++shard) {
      for (int expert = 0; expert < kExperts; ++expert) {
        const MeshView mine = At(shard, expert);
        int members = 0;
        for (int s = 0; s < kShards; ++s) {
          for (int e = 0; e < kExperts; ++e) {
            for (int t = 0; t < 2; ++t) {
              const MeshView other = At(s, e, t);
              const bool here = t == 0 && (group.part == GroupPart::kWhole ? true
                                           : group.part == GroupPart::kWithin
                                               ? s / kRun == shard / kRun
                                               : s % kRun == shard % kRun && e == expert);
              EXPECT_EQ(AreInOneGroup(group, mine.coordinates, other.coordinates), here);
              if (!here) continue;
              EXPECT_EQ(IndexInGroup(other, group), members++) << ToText(group);
            }
          }
        }
        EXPECT_EQ(GroupSize(mine, group), members) << ToText(group);
      }
    }
  }
  EXPECT_EQ(ToText(kWithin), "data_shard_within_3+expert");
  EXPECT_EQ(ToText(kAcross), "data_shard_across_3");
  EXPECT_EQ(AxisText(PerAxis{{1, 1, 6, 1, 1, 1}}, kWithin), "data_shard_within_3");
  EXPECT_NE(kWithin, ShardGroup());
  EXPECT_NE(kWithin, WithinRun(ShardGroup(), 2));
  EXPECT_NE(AcrossRuns(ShardGroup(), kRun), kWithin);
}

// Applies the rules on each rank to one tensor with numbered rows: over the ranks that are not
// copies of each other, the rows that they hold are every row once.
TEST(ShardRuns, ScatteredWithinAndThenAcrossIsCutByPlaceInTheRunFirst) {
  for (const int64_t rows : {1, 5, 12, 37}) {
    std::vector<int> owners(static_cast<size_t>(rows));
    int64_t least = rows, most = 0;
    for (int shard = 0; shard < kShards; ++shard) {
      for (int expert = 0; expert < kExperts; ++expert) {
        const MeshView mesh = At(shard, expert);
        Value x;
        x.name = "x";
        x.dims = {{"rows", rows, rows}, {"columns", 3, 3}};
        x.placement[Axis::kDataShard] = x.placement[Axis::kExpert] = PartialSum();
        const std::vector<const Value*> inputs = {&x};
        const auto convert = [&](OpKind kind, const CollectiveGroup& group, int64_t extent = 0) {
          const CollectiveAttributes over = {group, CollectivePurpose::kGradient};
          AllGatherAttributes gather = {over};
          gather.extent = extent;
          const Attributes attributes = kind == OpKind::kAllGather
                                            ? Attributes(gather)
                                            : Attributes(ReduceScatterAttributes{over});
          const auto types = RulesOf(kind).infer(mesh, attributes, inputs);
          if (!types.ok()) return types.status();
          x.dims = (*types)[0].dims;
          x.placement = (*types)[0].placement;
          return OkStatus();
        };
        EXPECT_FALSE(convert(OpKind::kReduceScatter, kAcross).ok()) << "within comes first";
        const int place = (shard % kRun) * kExperts + expert;
        const Range block = BalancedRange(rows, kRun * kExperts, place);
        const Range mine = BalancedRange(block.size(), kShards / kRun, shard / kRun);
        ASSERT_TRUE(convert(OpKind::kReduceScatter, kWithin).ok());
        EXPECT_EQ(ToText(x.placement), "data_shard:S(0,run 3,across P(sum)) expert:S(0)");
        EXPECT_EQ(x.dims[0].local, block.size());
        EXPECT_FALSE(convert(OpKind::kReduceScatter, kWithin).ok()) << "it is no sum any more";
        EXPECT_FALSE(convert(OpKind::kAllGather, kWithin, rows).ok()) << "it is a part of a sum";
        ASSERT_TRUE(convert(OpKind::kReduceScatter, kAcross).ok());
        EXPECT_EQ(ToText(x.placement), "data_shard:S(0,run 3,across S) expert:S(0)");
        EXPECT_EQ(x.dims[0].local, mine.size());
        for (int64_t row = mine.begin; row < mine.end; ++row)
          ++owners[static_cast<size_t>(block.begin + row)];
        least = std::min(least, mine.size());
        most = std::max(most, mine.size());

        EXPECT_FALSE(convert(OpKind::kAllGather, ShardGroup(), rows).ok())
            << "blocks are not in order";
        EXPECT_FALSE(convert(OpKind::kAllGather, kWithin, rows).ok())
            << "it holds its own part alone";
        ASSERT_TRUE(convert(OpKind::kAllGather, kAcross, block.size()).ok());
        EXPECT_EQ(ToText(x.placement), "data_shard:S(0,run 3,across C) expert:S(0)");
        EXPECT_FALSE(convert(OpKind::kAllGather, WithinRun(ShardGroup(), 2), rows).ok());
        ASSERT_TRUE(convert(OpKind::kAllGather, kWithin, rows).ok());
        EXPECT_EQ(ToText(x.placement), "data_shard:C expert:C");
        EXPECT_EQ(x.dims[0].local, rows);
      }
    }
    EXPECT_THAT(owners, testing::Each(1));
    EXPECT_LE(most - least, 1) << rows;
  }
}

TEST(ShardRuns, ThePlacementOfAGradientExchangesCopiedAndPartialAcrossRunsToo) {
  Placement held;
  held[Axis::kDataShard] = ShardInRuns(0, 2, PlacementKind::kCopied);
  const Placement gradient = GradientPlacement(held);
  EXPECT_EQ(ToText(gradient), "data_shard:S(0,run 2,across P(sum))");
  EXPECT_EQ(GradientPlacement(gradient), held);
}

TEST(ShardRuns, NoOtherOperationTakesABlockOfARunOrAPartOfAnAxis) {
  MeshView mesh = At(0, 0);
  Value a;
  a.name = "a";
  a.dims = {{"rows", 6, 2}, {"columns", 3, 3}};
  a.placement[Axis::kDataShard] = ShardInRuns(0, kRun, PlacementKind::kReplicated);
  Value w;
  w.name = "w";
  w.dims = {{"out", 5, 5}, {"columns", 3, 3}};
  w.placement[Axis::kDataShard] = Copied();
  const std::vector<const Value*> product = {&a, &w};
  const auto multiplied = RulesOf(OpKind::kMatmul).infer(mesh, NoAttributes(), product);
  EXPECT_THAT(std::string(Message(multiplied.status())), testing::HasSubstr("gather it first"));
  a.placement[Axis::kDataShard] = Shard(0);
  EXPECT_TRUE(RulesOf(OpKind::kMatmul).infer(mesh, NoAttributes(), product).ok());
  a.placement[Axis::kDataShard] = PartialSum();
  const std::vector<const Value*> one = {&a};
  const CollectiveGroup whole = GroupOf(Axis::kDataShard);
  const auto reduce = [&](const CollectiveGroup& group) {
    return RulesOf(OpKind::kAllReduce)
        .infer(mesh, AllReduceAttributes{{group, CollectivePurpose::kGradient}}, one)
        .ok();
  };
  EXPECT_TRUE(reduce(whole));
  EXPECT_FALSE(reduce(WithinRun(whole, kRun)));
  EXPECT_FALSE(reduce(AcrossRuns(whole, kRun)));
  // Runs that do not divide the axis.
  const auto scatter = [&](const CollectiveGroup& group) {
    return RulesOf(OpKind::kReduceScatter)
        .infer(mesh, ReduceScatterAttributes{{group, CollectivePurpose::kGradient}}, one)
        .ok();
  };
  EXPECT_TRUE(scatter(WithinRun(whole, kRun)));
  EXPECT_FALSE(scatter(WithinRun(whole, 4)));
  EXPECT_FALSE(scatter(WithinRun(GroupOf(Axis::kExpert), kRun)));
}

BuildOptions RunOptions(int shards, int run, int rank) {
  MeshView mesh;
  mesh.degrees[Axis::kDataShard] = shards;
  mesh.coordinates[Axis::kDataShard] = rank;
  BuildOptions options = StageOptions(SmallModel("ADAD"), mesh, 2, 8);
  options.zero_stage = 3;
  options.shard_run = run;
  return options;
}

TEST(ShardRuns, BuildsAndVerifiesEveryRank) {
  for (const auto& [shards, run] : {std::pair(4, 2), std::pair(6, 2), std::pair(6, 3),
                                    std::pair(80, 40)}) {  // 80: more than the rows of any dim
    for (const int rank : {0, 1, run, shards - 1}) {
      for (const int pipe : {1, 2}) {
        for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
          for (const bool tied : {false, true}) {
            BuildOptions options = RunOptions(shards, run, rank);
            MeshView mesh = options.mesh;
            mesh.degrees[Axis::kTensor] = 2;
            mesh.degrees[Axis::kPipe] = pipe;
            mesh.coordinates[Axis::kPipe] = pipe - 1;
            ModelConfig model = options.model;
            model.tie_word_embeddings = tied;
            options = StageOptions(model, mesh, 2, 8);
            options.zero_stage = 3;
            options.shard_run = run;
            options.sequence_parallel = tied;
            options.bucket_elements = tied ? 1 : 600;
            options.compute_dtype = dtype;
            const auto program = BuildProgram(options);
            EXPECT_TRUE(program.ok()) << program.status();
          }
        }
      }
    }
  }
}

TEST(ShardRuns, RefusesRunsThatAreNone) {
  for (const auto& [stage, run] : {std::pair(2, 2), std::pair(3, 1), std::pair(3, 6),
                                   std::pair(3, 4), std::pair(3, 12), std::pair(3, -2)}) {
    BuildOptions options = RunOptions(6, run, 0);
    options.zero_stage = stage;
    EXPECT_THAT(std::string(Message(BuildProgram(options).status())),
                testing::HasSubstr("data_shard ranks under zero_stage"))
        << stage << " " << run;
  }
}

TEST(ShardRuns, GatherAcrossOnceAStepAndWithinForEachPass) {
  for (const bool experts : {false, true}) {
    MeshView mesh;
    mesh.degrees[Axis::kDataShard] = 4;
    mesh.degrees[Axis::kExpert] = experts ? 2 : 1;
    BuildOptions options =
        StageOptions(experts ? SmallMixture("AE") : SmallModel("AD"), mesh, 2, 8);
    options.zero_stage = 3;
    options.shard_run = 2;
    const Program program = BuildProgram(options).value();
    std::map<std::string, int> found;
    for (const Piece piece : {Piece::kUnshard, Piece::kForward, Piece::kBackward, Piece::kReduce}) {
      for (const Op& op : program.Ops(0, piece)) {
        const auto* collective = FindCollective(op.attributes);
        if (collective == nullptr || op.kind == OpKind::kCopy ||
            !(collective->group.axes & GroupOf(Axis::kDataShard).axes)) {
          continue;
        }
        ++found[std::string(Name(piece)) + " " + Name(op.kind) + " " + ToText(collective->group)];
      }
    }
    const int parameters = static_cast<int>(program.parameters.size());
    const int banks = experts ? 2 : 0, dense = parameters - banks;
    EXPECT_EQ(found["unshard all_gather data_shard_across_2"], parameters);
    EXPECT_EQ(found["forward all_gather data_shard_within_2+expert"], dense);
    EXPECT_EQ(found["forward all_gather data_shard_within_2"], banks);
    // The embedding's derivative does not read its table.
    EXPECT_EQ(found["backward all_gather data_shard_within_2+expert"], dense - 1);
    EXPECT_EQ(found["backward all_gather data_shard_within_2"], banks);
    EXPECT_EQ(found["backward reduce_scatter data_shard_within_2+expert"], dense);
    EXPECT_EQ(found["backward reduce_scatter data_shard_within_2"], banks);
    EXPECT_EQ(found["backward reduce_scatter data_shard_across_2"], parameters);
    int others = 0;
    for (const auto& [text, count] : found) others += text.find("_2") == std::string::npos;
    EXPECT_EQ(others, 0);
  }
}

TEST(ShardRuns, HoldsAShareOfTheParametersInAdditionToWhatZeroThreeKeeps) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const auto persistent = [&](int run) {
      MeshView mesh;
      mesh.degrees[Axis::kDataShard] = 8;
      BuildOptions options = StageOptions(Llama124m(), mesh, 1, 32);
      options.zero_stage = 3;
      options.shard_run = run;
      options.compute_dtype = dtype;
      return static_cast<double>(
          PlanMemory(BuildProgram(options).value(), {2}, false, 1).persistent_bytes);
    };
    // An eighth of 16 bytes per parameter (18 with copies); and a run's share of the copies instead
    // of an eighth.
    const double blocks = dtype == DType::kFloat32 ? 16.0 / 8 : 18.0 / 8;
    const double copy = dtype == DType::kFloat32 ? 4 : 2;
    for (const int run : {2, 4}) {
      EXPECT_NEAR(persistent(run) / persistent(0), (blocks - copy / 8 + copy / run) / blocks, 0.01)
          << run;
    }
  }
}

// All ranks begin and complete the same collectives in the same order, regardless of how many rows
// of a tensor each has.
TEST(ShardRuns, TheOrderOfCollectivesIsThatOfEveryRank) {
  std::vector<std::string> orders;
  for (const int rank : {0, 39, 40, 79}) {
    BuildOptions options = RunOptions(80, 40, rank);
    options.bucket_elements = 600;
    const Program program = BuildProgram(options).value();
    std::string order;
    for (const Piece piece : {Piece::kUnshard, Piece::kForward, Piece::kBackward, Piece::kReduce}) {
      for (const Op& op : program.Ops(0, piece)) {
        order += std::string(Name(op.kind)) + (op.asynchronous ? "…" : "") + " ";
        if (op.kind == OpKind::kWait) order += program.value(op.inputs[0]).name + " ";
      }
    }
    orders.push_back(order);
  }
  EXPECT_THAT(orders, testing::Each(orders[0]));
}

// Counts asynchronous collectives by group, and those that hide matmuls.
TEST(ShardRuns, OverlapsGathersAndBothScattersWithComputation) {
  BuildOptions options = RunOptions(4, 2, 0);
  options.bucket_elements = 1;
  const Program program = BuildProgram(options).value();
  const std::vector<Op>& ops = program.Ops(0, Piece::kBackward);
  std::map<std::string, int> hidden, all;
  for (size_t i = 0; i < ops.size(); ++i) {
    const auto* collective = FindCollective(ops[i].attributes);
    if (collective == nullptr || ops[i].kind == OpKind::kCopy) continue;
    const std::string text = std::string(Name(ops[i].kind)) + " " + ToText(collective->group);
    ++all[text];
    if (!ops[i].asynchronous) continue;
    int products = 0;
    for (size_t j = i + 1; j < ops.size(); ++j) {
      if (ops[j].kind == OpKind::kWait && ops[j].inputs[0] == ops[i].outputs[0]) break;
      products += RulesOf(ops[j].kind).model_flops != nullptr;
    }
    hidden[text] += products > 0;
  }
  for (const char* text :
       {"all_gather data_shard_within_2+expert", "reduce_scatter data_shard_within_2+expert",
        "reduce_scatter data_shard_across_2"}) {
    EXPECT_GT(all[text], 10) << text;
    // The last bucket is not hidden, nor is a bucket that the next one follows immediately.
    EXPECT_GE(hidden[text], all[text] / 2) << text;
  }
  // Unshard begins them, and F waits just before it gathers within the run.
  for (const Op& op : program.Ops(0, Piece::kUnshard)) EXPECT_TRUE(op.asynchronous);
}

}  // namespace
}  // namespace troupe::model
