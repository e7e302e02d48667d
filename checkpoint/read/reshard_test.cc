#include "checkpoint/read/reshard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <random>

namespace troupe {
namespace {

// Copies `common` from row-major `source` data to `destination` data, element by element.
void CopySlowly(const Box& common, const Box& source, const Box& destination,
                const std::vector<int>& from, std::vector<int>& to) {
  const int64_t elements = *Elements(common.shape);
  for (int64_t i = 0; i < elements; ++i) {
    int64_t left = i, at_source = 0, at_destination = 0, source_stride = 1, destination_stride = 1;
    for (size_t d = common.shape.size(); d-- > 0;) {
      const int64_t index = common.offset[d] + left % common.shape[d];
      left /= common.shape[d];
      at_source += (index - source.offset[d]) * source_stride;
      at_destination += (index - destination.offset[d]) * destination_stride;
      source_stride *= source.shape[d];
      destination_stride *= destination.shape[d];
    }
    to[static_cast<size_t>(at_destination)] = from[static_cast<size_t>(at_source)];
  }
}

Box RandomBox(std::mt19937_64& random, const Extents& shape) {
  Box box;
  for (const int64_t extent : shape) {
    const int64_t begin = static_cast<int64_t>(random() % static_cast<uint64_t>(extent));
    box.offset.push_back(begin);
    box.shape.push_back(1 + static_cast<int64_t>(random() % static_cast<uint64_t>(extent - begin)));
  }
  return box;
}

TEST(ForEachRun, CopiesWhatAnElementwiseCopyDoes) {
  std::mt19937_64 random(2);
  int overlapping = 0;
  for (int trial = 0; trial < 500; ++trial) {
    Extents shape(random() % 5);
    for (int64_t& extent : shape) extent = 1 + static_cast<int64_t>(random() % 5);
    const Box source = RandomBox(random, shape), destination = RandomBox(random, shape);
    const auto common = Intersect(source, destination);
    if (!common.has_value()) continue;
    ++overlapping;
    std::vector<int> from(static_cast<size_t>(*Elements(source.shape)));
    std::iota(from.begin(), from.end(), 1);
    std::vector<int> expected(static_cast<size_t>(*Elements(destination.shape)), 0);
    std::vector<int> actual = expected;
    CopySlowly(*common, source, destination, from, expected);
    int64_t last = -1;
    ASSERT_TRUE(ForEachRun(*common, source, destination, 1, [&](int64_t s, int64_t d, int64_t n) {
                  EXPECT_GT(s, last);  // front to back
                  last = s;
                  std::copy_n(from.begin() + s, n, actual.begin() + d);
                  return OkStatus();
                }).ok());
    ASSERT_EQ(actual, expected);
  }
  EXPECT_GT(overlapping, 200);
}

TEST(ForEachRun, MakesOneRunOfWhatIsContiguousInBoth) {
  const auto runs = [](const Box& source, const Box& destination) {
    std::vector<int64_t> bytes;
    EXPECT_TRUE(ForEachRun(*Intersect(source, destination), source, destination, 4,
                           [&](int64_t, int64_t, int64_t n) {
                             bytes.push_back(n);
                             return OkStatus();
                           })
                    .ok());
    return bytes;
  };
  using Bytes = std::vector<int64_t>;
  EXPECT_EQ(runs({{0, 0}, {8, 6}}, {{0, 0}, {8, 6}}), (Bytes{8 * 6 * 4}));
  EXPECT_EQ(runs({{0, 0}, {8, 6}}, {{2, 0}, {3, 6}}), (Bytes{3 * 6 * 4}));
  EXPECT_EQ(runs({{0, 0}, {2, 6}}, {{0, 3}, {2, 3}}), (Bytes{12, 12}));
  EXPECT_EQ(runs({{}, {}}, {{}, {}}), (Bytes{4}));
}

TEST(ForEachRun, StopsAtAnError) {
  int calls = 0;
  const Status status = ForEachRun(
      {{0, 0}, {4, 1}}, {{0, 0}, {4, 2}}, {{0, 0}, {4, 1}}, 1,
      [&](int64_t, int64_t, int64_t) { return ++calls == 2 ? Unavailable("stop") : OkStatus(); });
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(calls, 2);
}

v1::CheckpointManifest TwoHalves() {
  v1::CheckpointManifest manifest;
  for (int s = 0; s < 2; ++s) {
    v1::TensorSlice& tensor = *manifest.add_shards()->add_tensors();
    tensor.set_name("w");
    tensor.set_dtype("F32");
    for (const int64_t extent : {8, 4}) tensor.add_global_shape(extent);
    for (const int64_t offset : {4 * s, 0}) tensor.add_global_offset(offset);
    for (const int64_t extent : {4, 4}) tensor.add_shape(extent);
    tensor.set_data_end(64);
  }
  return manifest;
}

TEST(PlanReads, ReadsOnlyTheFilesThatHoldWantedBytes) {
  const GlobalSlice lower{"w", "F32", {8, 4}, {{5, 0}, {2, 4}}};
  const auto reads = PlanReads(TwoHalves(), std::array{lower});
  ASSERT_TRUE(reads.ok());
  ASSERT_EQ(reads->size(), 1u);
  EXPECT_EQ((*reads)[0].shard, 1);
  EXPECT_EQ((*reads)[0].common, lower.box);
  const GlobalSlice columns{"w", "F32", {8, 4}, {{0, 1}, {8, 2}}};
  EXPECT_EQ(PlanReads(TwoHalves(), std::array{columns})->size(), 2u);
}

TEST(PlanReads, NamesTheTensorThatIsMissingOrDifferent) {
  const GlobalSlice missing{"v", "F32", {8, 4}, {{0, 0}, {8, 4}}};
  EXPECT_EQ(PlanReads(TwoHalves(), std::array{missing}).status().code(), StatusCode::kNotFound);
  const GlobalSlice shape{"w", "F32", {8, 8}, {{0, 0}, {8, 8}}};
  const auto differs = PlanReads(TwoHalves(), std::array{shape});
  EXPECT_EQ(differs.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      std::string(Message(differs.status())),
      ::testing::HasSubstr("tensor w: the checkpoint has [8, 4] of F32, the model [8, 8] of F32"));
  const GlobalSlice dtype{"w", "BF16", {8, 4}, {{0, 0}, {8, 4}}};
  EXPECT_EQ(PlanReads(TwoHalves(), std::array{dtype}).status().code(),
            StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace troupe
