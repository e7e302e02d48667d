#include "checkpoint/read/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/temporary_directory.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/test_checkpoint.h"

namespace troupe {
namespace {

class DiffTest : public ::testing::Test {
 protected:
  CheckpointDifference Diff(const TestTensors& a, const TestTensors& b, int ranks_a = 1,
                            int ranks_b = 1) {
    const TemporaryDirectory folder;
    const std::string paths[] = {folder.Child("a"), folder.Child("b")};
    WriteTestCheckpoint(files_, paths[0], a, ranks_a);
    WriteTestCheckpoint(files_, paths[1], b, ranks_b);
    auto result = DiffCheckpoints(files_, paths[0], *ReadManifest(files_, paths[0], ""), paths[1],
                                  *ReadManifest(files_, paths[1], ""));
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : CheckpointDifference();
  }

  PosixFileSystem files_;
};

std::vector<float> Numbers(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i) * 0.25f + 1;
  return values;
}

TEST_F(DiffTest, TheSameTensorsUnderDifferentLayoutsAreEqual) {
  const TestTensors tensors = {{"w", Numbers(52)}, {"v", Numbers(8)}};
  const CheckpointDifference same = Diff(tensors, tensors, 1, 3);
  EXPECT_TRUE(same.empty());
  EXPECT_EQ(same.tensors, 2);
  EXPECT_EQ(same.elements, 60);
}

TEST_F(DiffTest, NamesTheTensorsThatDifferAndByHowMuch) {
  TestTensors a = {
      {"same", Numbers(8)}, {"w", Numbers(52)}, {"gone", Numbers(4)}, {"cut", Numbers(8)}};
  TestTensors b = a;
  b["w"][3] += 0.5f;
  b["w"][50] -= 2.0f;  // 13.5 → 11.5
  b.erase("gone");
  b["more"] = Numbers(4);
  b["cut"].resize(4);
  const CheckpointDifference difference = Diff(a, b, 2, 3);
  ASSERT_EQ(difference.differing.size(), 4u);
  EXPECT_EQ(difference.differing[0].name, "cut");
  EXPECT_EQ(difference.differing[0].reason,
            "F32 of [2, 4] in the first, F32 of [1, 4] in the second");
  EXPECT_EQ(difference.differing[1].reason, "only in the first");
  EXPECT_EQ(difference.differing[2].reason, "only in the second");
  const TensorDifference& w = difference.differing[3];
  EXPECT_EQ(w.name, "w");
  EXPECT_EQ(w.elements, 52);
  EXPECT_EQ(w.differing, 2);
  EXPECT_EQ(w.max_absolute, 2.0);
  EXPECT_DOUBLE_EQ(w.max_relative, 0.5 / 2.25);
}

TEST_F(DiffTest, ANumberThatIsNotFiniteDiffersWithoutLimitAndEqualBitsDoNot) {
  TestTensors a = {{"w", Numbers(8)}};
  a["w"][0] = std::numeric_limits<float>::quiet_NaN();
  TestTensors b = a;
  EXPECT_TRUE(Diff(a, b).empty());
  b["w"][0] = 0;
  const CheckpointDifference difference = Diff(a, b);
  ASSERT_EQ(difference.differing.size(), 1u);
  EXPECT_TRUE(std::isinf(difference.differing[0].max_absolute));
  EXPECT_EQ(difference.differing[0].differing, 1);
  a["w"][0] = -0.0f;
  const CheckpointDifference sign = Diff(a, b);
  ASSERT_EQ(sign.differing.size(), 1u);
  EXPECT_EQ(sign.differing[0].max_absolute, 0);
}

TEST_F(DiffTest, ATensorOfManyBlocksIsComparedWhole) {
  // 24 MB: three units per tensor, more than one batch.
  TestTensors a = {{"w", Numbers(6 << 20)}, {"x", Numbers(6 << 20)}, {"y", Numbers(6 << 20)}};
  TestTensors b = a;
  for (auto& [name, values] : b) {
    values.front() = values.back() = 0;
    values[values.size() / 2] = 0;
  }
  const CheckpointDifference difference = Diff(a, b, 1, 2);
  ASSERT_EQ(difference.differing.size(), 3u);
  for (const TensorDifference& tensor : difference.differing) EXPECT_EQ(tensor.differing, 3);
}

TEST_F(DiffTest, DamageIsAnErrorAndNoDifference) {
  const TemporaryDirectory folder;
  const std::string path = folder.Child("a");
  WriteTestCheckpoint(files_, path, {{"w", Numbers(8)}}, 1);
  const auto manifest = *ReadManifest(files_, path, "");
  ChangeFile(files_, path + "/" + ShardFileName(0), [](std::string& bytes) { bytes.back() ^= 1; });
  EXPECT_EQ(DiffCheckpoints(files_, path, manifest, path, manifest).status().code(),
            StatusCode::kDataLoss);
}

}  // namespace
}  // namespace troupe
