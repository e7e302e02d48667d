#include "checkpoint/read/survey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/durable_write.h"
#include "base/temporary_directory.h"
#include "checkpoint/format/attempt.h"
#include "checkpoint/format/manifest.h"
#include "checkpoint/test_checkpoint.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

class SurveyTest : public ::testing::Test {
 protected:
  std::string PathOf(const std::string& job, int64_t step, int64_t attempt, int64_t wall) {
    return folder_.Child(job + "/" + AttemptName(step, 2, attempt, wall));
  }

  std::string Write(const std::string& job, int64_t step, int64_t attempt, int64_t wall,
                    int64_t created = 90) {
    v1::CheckpointManifest manifest;
    manifest.set_job(job);
    manifest.set_attempt(attempt);
    manifest.set_group_epoch(2);
    manifest.mutable_state()->set_step(step);
    manifest.mutable_layout()->set_tensor(2);
    manifest.set_wall_time_ns(wall);
    manifest.set_job_create_wall_time_ns(created);
    manifest.set_job_spec_json(fmt::format("spec of attempt {}", attempt));
    return WriteTestCheckpoint(files_, PathOf(job, step, attempt, wall),
                               {{"w", std::vector<float>(16, 1.0f)}}, 2, manifest);
  }

  Survey Look(const std::string& path) {
    auto survey = SurveyCheckpoints(files_, path);
    EXPECT_TRUE(survey.ok()) << survey.status();
    return survey.ok() ? *std::move(survey) : Survey();
  }

  TemporaryDirectory folder_;
  PosixFileSystem files_;
};

TEST_F(SurveyTest, FindsTheCheckpointsOfEveryJobAsTheCatalogHadThem) {
  Write("a", 4, 1, 100);
  const std::string digest = Write("a", 8, 3, 100);
  Write("b", 2, 1, 50);
  const Survey survey = Look(folder_.path());
  EXPECT_TRUE(survey.left_out.empty());
  ASSERT_EQ(survey.jobs.size(), 2u);
  const SurveyedJob& a = survey.jobs[0];
  EXPECT_EQ(a.id, "a");
  EXPECT_EQ(a.folder, folder_.path());
  EXPECT_EQ(a.spec_json, "spec of attempt 3");
  ASSERT_EQ(a.checkpoints.size(), 2u);
  const v1::CheckpointRecord& newest = a.checkpoints[1];
  EXPECT_EQ(newest.state(), v1::CHECKPOINT_STATE_COMMITTED);
  EXPECT_EQ(newest.path(), PathOf("a", 8, 3, 100));
  EXPECT_EQ(newest.digest(), digest);
  EXPECT_EQ(newest.step(), 8);
  EXPECT_EQ(newest.attempt(), 3);
  EXPECT_EQ(newest.group_epoch(), 2u);
  EXPECT_EQ(newest.layout().tensor(), 2);
  EXPECT_EQ(newest.expected_shards(), 2);
  EXPECT_GT(newest.bytes(), 8192);
  EXPECT_TRUE(newest.pinned());
  // The directory of one job works as well.
  EXPECT_EQ(Look(folder_.Child("b")).jobs.at(0).id, "b");
}

TEST_F(SurveyTest, ADamagedOneIsQuarantinedAndWhatIsNoneIsLeftOutWithTheReason) {
  Write("a", 4, 1, 100);
  Write("a", 8, 2, 100);
  Write("a", 12, 3, 100);
  ChangeFile(files_, PathOf("a", 8, 2, 100) + "/" + ShardFileName(1),
             [](std::string& bytes) { bytes.back() ^= 1; });
  ChangeFile(files_, PathOf("a", 12, 3, 100) + "/" + kManifestFileName,
             [](std::string& bytes) { bytes.resize(bytes.size() / 2); });
  TROUPE_CHECK_OK(MakeAttemptDirectory(files_, PathOf("a", 16, 4, 100)));
  TROUPE_CHECK_OK(MakeDirectories(files_, folder_.Child("a/notes")));
  TROUPE_CHECK_OK(WriteFileDurably(files_, folder_.Child("readme"), AsBytes("x")));
  const Survey survey = Look(folder_.path());
  ASSERT_EQ(survey.jobs.size(), 1u);
  ASSERT_EQ(survey.jobs[0].checkpoints.size(), 2u);
  const v1::CheckpointRecord& bad = survey.jobs[0].checkpoints[1];
  EXPECT_EQ(bad.state(), v1::CHECKPOINT_STATE_QUARANTINED);
  EXPECT_THAT(bad.reason(), HasSubstr(ShardFileName(1)));
  ASSERT_EQ(survey.left_out.size(), 2u);
  EXPECT_EQ(survey.left_out[0].path, PathOf("a", 12, 3, 100));
  EXPECT_THAT(survey.left_out[1].reason, HasSubstr("never committed"));
}

// No message could have its path.
TEST_F(SurveyTest, ACheckpointWhosePathIsNotUtf8IsLeftOut) {
  Write("a", 4, 1, 100);
  Write("caf\xe9", 4, 1, 100);
  const Survey survey = Look(folder_.path());
  ASSERT_EQ(survey.jobs.size(), 1u);
  EXPECT_EQ(survey.jobs[0].id, "a");
  ASSERT_EQ(survey.left_out.size(), 1u);
  EXPECT_THAT(survey.left_out[0].reason, HasSubstr("its path is not UTF-8: its byte "));
}

TEST_F(SurveyTest, OfTwoJobsOfANameTheNewerOneCounts) {
  Write("a", 4, 1, 100);
  Write("a", 8, 2, 100);
  Write("a", 12, 9, 150);
  Write("a", 2, 1, 200, 190);
  Write("a", 4, 2, 200, 190);
  const Survey survey = Look(folder_.path());
  ASSERT_EQ(survey.jobs.size(), 1u);
  ASSERT_EQ(survey.jobs[0].checkpoints.size(), 2u);
  EXPECT_EQ(survey.jobs[0].checkpoints[1].path(), PathOf("a", 4, 2, 200));
  EXPECT_EQ(survey.jobs[0].create_wall_time_ns, 190);
  EXPECT_EQ(survey.left_out.size(), 3u);
  EXPECT_THAT(survey.left_out[0].reason, HasSubstr("earlier job"));
}

TEST_F(SurveyTest, AClockThatWasSetBackBetweenTwoCheckpointsChangesNothing) {
  Write("a", 4, 1, 1000);
  Write("a", 8, 2, 100);
  const Survey survey = Look(folder_.path());
  ASSERT_EQ(survey.jobs.at(0).checkpoints.size(), 2u);
  EXPECT_EQ(survey.jobs[0].checkpoints[1].step(), 8);
  EXPECT_EQ(survey.jobs[0].spec_json, "spec of attempt 2");
  EXPECT_TRUE(survey.left_out.empty());
}

TEST_F(SurveyTest, AFolderThatIsNotThereIsNotFound) {
  EXPECT_EQ(SurveyCheckpoints(files_, folder_.Child("no")).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace troupe
