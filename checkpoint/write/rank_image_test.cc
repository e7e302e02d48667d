#include "checkpoint/write/rank_image.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/temporary_directory.h"
#include "checkpoint/read/shard_reader.h"
#include "checkpoint/test_checkpoint.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class RankImage : public ::testing::Test {
 protected:
  StatusOr<std::string> Write() {
    v1::ImageManifest manifest;
    manifest.set_job("a");
    manifest.set_rank(3);
    manifest.mutable_state()->set_step(50);
    const GlobalSlice slice{"w", "F32", {8, 4}, {{4, 0}, {2, 4}}};
    return WriteRankImage(files_, path_, manifest,
                          {{slice, std::as_bytes(std::span(values_)), nullptr}});
  }

  TemporaryDirectory directory_;
  PosixFileSystem files_;
  const std::string root_ = directory_.Child("images");
  const std::string path_ = ImageDirectory(root_, "a", 50, 2, 3);
  const std::vector<float> values_ = {1, 2, 3, 4, 5, 6, 7, 8};
};

TEST_F(RankImage, IsReadAsItWasWritten) {
  EXPECT_EQ(path_, root_ + "/a/step-00000050-epoch-2-rank-00003");
  const std::string digest = Write().value();
  EXPECT_EQ(Write().value(), digest) << "a former try is replaced";
  const v1::CheckpointManifest manifest = ReadRankImage(files_, path_, digest).value();
  EXPECT_EQ(manifest.state().step(), 50);
  std::vector<float> read(8);
  const LoadTarget target{{"w", "F32", {8, 4}, {{4, 0}, {2, 4}}},
                          std::as_writable_bytes(std::span(read))};
  ASSERT_TRUE(LoadSlices(files_, path_, manifest, {&target, 1}).ok());
  EXPECT_EQ(read, values_);
}

TEST_F(RankImage, ThatIsAnotherOrNotThereIsRefused) {
  EXPECT_EQ(ReadRankImage(files_, path_, "sha256:x").status().code(), StatusCode::kNotFound);
  const std::string digest = Write().value();
  EXPECT_EQ(ReadRankImage(files_, path_, "sha256:x").status().code(), StatusCode::kDataLoss);
  ChangeFile(files_, path_ + "/image.json", [](std::string& bytes) { bytes[5] ^= 1; });
  EXPECT_EQ(ReadRankImage(files_, path_, digest).status().code(), StatusCode::kDataLoss);
}

TEST_F(RankImage, IsFoundBeneathItsRootAlsoWhereItIsNotWhole) {
  EXPECT_TRUE(FindRankImages(files_, root_).value().empty());
  TROUPE_CHECK_OK(Write().status());
  const std::string partial = ImageDirectory(root_, "b", 7, 12, 0);
  TROUPE_CHECK_OK(MakeDirectories(files_, partial));
  TROUPE_CHECK_OK(MakeDirectories(files_, root_ + "/b/step-3-epoch-x-rank-0"));
  TROUPE_CHECK_OK(MakeDirectories(files_, root_ + "/b/notes"));
  const std::vector<v1::HeldImage> found = FindRankImages(files_, root_).value();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].job(), "a");
  EXPECT_EQ(found[0].group_epoch(), 2u);
  EXPECT_EQ(found[0].path(), path_);
  EXPECT_EQ(found[1].job(), "b");
  EXPECT_EQ(found[1].group_epoch(), 12u);
  EXPECT_EQ(found[1].path(), partial);
}

TEST_F(RankImage, IsDeletedBeneathItsRootAlone) {
  TROUPE_CHECK_OK(Write().status());
  const Status outside = DeleteRankImage(files_, directory_.Child("elsewhere"), path_);
  EXPECT_EQ(outside.code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(DeleteRankImage(files_, root_, root_ + "/../images/a").ok());
  EXPECT_FALSE(DeleteRankImage(files_, root_, root_ + "/a").ok());
  ASSERT_TRUE(DeleteRankImage(files_, root_, path_).ok());
  EXPECT_EQ(files_.Stat(path_, SymbolicLinks::kRefuse).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(DeleteRankImage(files_, root_, path_).ok());
}

}  // namespace
}  // namespace troupe
