// Tests of the buckets' alignment and padding: the addresses of gradients, the ranges of each
// all-reduce, and the cuts of sharded parameters.
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "kernels/backend/op_sequence.h"
#include "kernels/backend/reduced_ranges.h"
#include "model/program/memory_plan.h"
#include "model/testing.h"

namespace troupe::kernels {
namespace {

using model::Axis;
using model::ParameterEntry;

constexpr int kRanks = 3;
constexpr model::BucketLayout kLayout = {.alignment = 64, .padding = 384};

model::BuildOptions Options(Axis axis, int index, int zero_stage) {
  model::MeshView mesh;
  mesh.degrees[axis] = kRanks;
  mesh.coordinates[axis] = index;
  model::BuildOptions options = model::StageOptions(model::SmallModel("ADAD"), mesh, 2, 8);
  options.zero_stage = zero_stage;
  options.bucket_elements = 1500;
  options.overlap = false;  // reductions stay in Reduce
  options.bucket_layout = kLayout;
  return options;
}

TEST(BucketLayout, EveryGradientIsAlignedAndEveryBucketPaddedInMemoryOfItsOwn) {
  const model::Program program = model::BuildProgram(Options(Axis::kDataReplicate, 0, 0)).value();
  const model::MemoryPlan plan = model::PlanMemory(program, {1}, false, 1);
  const auto offset = [&](model::ValueId id) { return plan.locations[id].offset; };
  std::map<int64_t, int64_t> persistent;  // begin and end of all other persistent values
  for (const ParameterEntry& entry : program.parameters) {
    for (const model::ValueId id :
         {entry.value, entry.gradient, entry.optimizer_states[0], entry.optimizer_states[1]}) {
      EXPECT_EQ(offset(id) % (4 * kLayout.alignment), 0) << program.value(id).name;
      persistent[offset(id)] = offset(id) + program.value(id).bytes();
    }
  }
  // Addresses are offsets from a base that every alignment divides; nothing reads there.
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  char* const base = reinterpret_cast<char*>(uintptr_t{1} << 40);
  int buckets = 0;
  for (const model::Op& op : program.Ops(0, model::Piece::kReduce)) {
    if (op.kind != model::OpKind::kAllReduce) continue;
    const auto ranges =
        ReducedRangesOf(program, op, [&](model::ValueId id) { return base + offset(id); });
    ASSERT_EQ(ranges.size(), 1u);
    EXPECT_EQ(ranges[0].bytes % (4 * kLayout.padding), 0);
    const int64_t begin = ranges[0].input - base, end = begin + ranges[0].bytes;
    EXPECT_LE(end, plan.persistent_bytes);
    const size_t inside = static_cast<size_t>(
        std::distance(persistent.lower_bound(begin), persistent.lower_bound(end)));
    EXPECT_EQ(inside, op.inputs.size()) << "the padding is some other value's memory";
    ++buckets;
  }
  EXPECT_GT(buckets, 1);
}

TEST(BucketLayout, WithoutAPolicyNothingIsPadded) {
  model::BuildOptions options = Options(Axis::kDataReplicate, 0, 0);
  const int64_t padded =
      model::PlanMemory(model::BuildProgram(options).value(), {1}, false, 1).persistent_bytes;
  options.bucket_layout = {};
  EXPECT_LT(model::PlanMemory(model::BuildProgram(options).value(), {1}, false, 1).persistent_bytes,
            padded);
}

// If each rank keeps only its blocks of the sums, no bucket is reduced as a whole and padding would
// be wasted memory.
TEST(BucketLayout, OnlyWhatIsSummedWholeIsPadded) {
  const auto bytes = [](model::BuildOptions options, int64_t padding) {
    options.bucket_layout.padding = padding;
    return model::PlanMemory(model::BuildProgram(options).value(), {1}, false, 1).persistent_bytes;
  };
  for (const int zero_stage : {1, 2, 3}) {
    SCOPED_TRACE(zero_stage);
    const model::BuildOptions alone = Options(Axis::kDataShard, 0, zero_stage);
    EXPECT_EQ(bytes(alone, kLayout.padding), bytes(alone, kLayout.alignment));
    model::BuildOptions replicas = alone;
    replicas.mesh.degrees[Axis::kDataReplicate] = 2;
    EXPECT_EQ(bytes(replicas, kLayout.padding) > bytes(replicas, kLayout.alignment),
              zero_stage > 1);
  }
}

// The sizes of each parameter's blocks on all ranks, in elements.
std::map<std::string, std::vector<int64_t>> Blocks(int zero_stage) {
  std::map<std::string, std::vector<int64_t>> blocks;
  for (int index = 0; index < kRanks; ++index) {
    const auto program = model::BuildProgram(Options(Axis::kDataShard, index, zero_stage));
    EXPECT_TRUE(program.ok()) << ToString(program.status());
    for (const ParameterEntry& entry : program->parameters) {
      blocks[program->value(entry.value).name].push_back(program->value(entry.value).elements());
    }
  }
  return blocks;
}

TEST(BucketLayout, BlocksOfAShardedParameterBeginAtMultiplesOfTheAlignment) {
  for (const int zero_stage : {1, 2, 3}) {
    SCOPED_TRACE(zero_stage);
    for (const auto& [name, elements] : Blocks(zero_stage)) {
      int64_t begin = 0;
      const int64_t whole = std::accumulate(elements.begin(), elements.end(), int64_t{0});
      for (const int64_t block : elements) {
        if (begin < whole) {
          EXPECT_EQ(begin % kLayout.alignment, 0) << name;
        }
        begin += block;
      }
    }
    // Blocks of the table are multiples of 4 rows of 16 elements. A norm of 16 elements is whole on
    // one rank.
    constexpr int64_t kBlock = 64, kRow = 16;
    EXPECT_EQ(Blocks(zero_stage)["embedding.table"],
              (std::vector<int64_t>{4 * kBlock, 3 * kBlock, 37 * kRow - 7 * kBlock}));
    EXPECT_EQ(Blocks(zero_stage)["block0.attention.norm"], (std::vector<int64_t>{16, 0, 0}));
  }
}

TEST(BucketLayout, TheLastBlockTakesWhatIsLeft) {
  const model::RowCut cut = {.unit = 4};
  int64_t rows = 0;
  for (int index = 0; index < kRanks; ++index) {
    EXPECT_EQ(cut.Of(37, kRanks, index).begin, rows);
    rows = cut.Of(37, kRanks, index).end;
  }
  EXPECT_EQ(rows, 37);
  EXPECT_EQ(cut.Of(3, kRanks, 0).size(), 3);
  EXPECT_EQ(cut.Of(3, kRanks, 1).size(), 0);
}

}  // namespace
}  // namespace troupe::kernels
