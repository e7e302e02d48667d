#include "checkpoint/read/shard_presence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/temporary_directory.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/test_checkpoint.h"

namespace troupe {
namespace {

class ShardPresenceTest : public ::testing::Test {
 protected:
  ShardPresenceTest() {
    WriteTestCheckpoint(files_, path_, {{"a", {1, 2, 3, 4, 5, 6, 7, 8}}}, 2);
    manifest_ = ReadManifest(files_, path_, "").value();
  }
  std::string ShardPath(int shard) { return JoinPath(path_, manifest_.shards(shard).name()); }
  std::vector<UnseenShard> Find() { return FindUnseenShards(files_, path_, manifest_); }

  TemporaryDirectory directory_;
  PosixFileSystem files_;
  SystemClock clock_;
  const std::string path_ = directory_.Child("step-00000001-epoch-1-attempt-1");
  v1::CheckpointManifest manifest_;
};

TEST_F(ShardPresenceTest, SeesAWholeAttempt) { EXPECT_TRUE(Find().empty()); }

TEST_F(ShardPresenceTest, NamesTheShardThatAnotherHostHasElsewhere) {
  TROUPE_CHECK_OK(files_.Remove(ShardPath(1)));
  const auto unseen = Find();
  ASSERT_EQ(unseen.size(), 1u);
  EXPECT_EQ(unseen[0].shard, 1);
  EXPECT_EQ(unseen[0].status.code(), StatusCode::kNotFound);
}

TEST_F(ShardPresenceTest, AnotherSizeOrHeaderThanWasVotedForIsNotSeen) {
  ChangeFile(files_, ShardPath(0), [](std::string& bytes) { bytes.pop_back(); });
  manifest_.mutable_shards(1)->mutable_tensors(0)->set_dtype("F64");
  const auto unseen = Find();
  ASSERT_EQ(unseen.size(), 2u);
  EXPECT_EQ(unseen[0].status.code(), StatusCode::kDataLoss);
  EXPECT_EQ(unseen[1].status.code(), StatusCode::kDataLoss);
}

TEST_F(ShardPresenceTest, WaitsForAFileThatIsSeenLate) {
  const std::string hidden = directory_.Child("hidden");
  TROUPE_CHECK_OK(files_.Rename(ShardPath(1), hidden));
  int pauses = 0;
  const Patience patience{&clock_, std::chrono::seconds(60), [&](Duration) {
                            if (++pauses == 3) TROUPE_CHECK_OK(files_.Rename(hidden, ShardPath(1)));
                            return true;
                          }};
  EXPECT_TRUE(WaitForShards(files_, path_, manifest_, patience).empty());
  EXPECT_EQ(pauses, 3);
}

TEST_F(ShardPresenceTest, GivesUpAtItsLimitOrWhenAsked) {
  TROUPE_CHECK_OK(files_.Remove(ShardPath(1)));
  int pauses = 0;
  const auto pause = [&](Duration) { return ++pauses < 2; };
  EXPECT_EQ(WaitForShards(files_, path_, manifest_, {&clock_, std::chrono::hours(1), pause}).size(),
            1u);
  EXPECT_EQ(pauses, 2);
  EXPECT_EQ(WaitForShards(files_, path_, manifest_, {&clock_, Duration::zero(), pause}).size(), 1u);
  EXPECT_EQ(pauses, 2);
}

}  // namespace
}  // namespace troupe
