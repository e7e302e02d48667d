// Tests of rebuilding a catalog from the checkpoint directories, and of pinned checkpoints.
#include "coordinator/job/rebuild.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/format/attempt.h"
#include "coordinator/test_cluster.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Kind = v1::CoordinatorMessage;

v1::CheckpointRecord Found(int64_t attempt, int64_t step, uint64_t epoch = 3) {
  v1::CheckpointRecord record;
  record.set_job("a");
  record.set_attempt(attempt);
  record.set_group_epoch(epoch);
  record.set_step(step);
  record.set_path("/folder/a/" + AttemptName(step, epoch, attempt, 5));
  record.set_state(v1::CHECKPOINT_STATE_COMMITTED);
  record.set_digest("sha256:" + std::string(64, 'a'));
  record.set_pinned(true);
  return record;
}

Reply Rebuild(TestCluster& cluster, const v1::RebuildJobRequest& request) {
  RebuildJobCall call{cluster.next_call++, request};
  return cluster.Do(call).replies.at(0);
}

v1::RebuildJobRequest Request() {
  v1::RebuildJobRequest request;
  *request.mutable_job() = TestSpec("a", 1, 100);
  request.mutable_job()->mutable_checkpoint()->set_folder("/folder");
  *request.add_checkpoints() = Found(4, 20);
  *request.add_checkpoints() = Found(7, 30, 5);
  request.set_create_wall_time_ns(77);
  return request;
}

TEST(Rebuild, AJobIsKnownAgainDurablyAndGoesOnBehindWhatWasFound) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  ASSERT_TRUE(Rebuild(cluster, Request()).status.ok());
  cluster.Restart();
  cluster.Reconnect("worker-0");
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(cluster.job("a").record.step(), 30);
  EXPECT_EQ(cluster.job("a").record.create_wall_time_ns(), 77);
  ResumeJobCall resume{cluster.next_call++, {}};
  resume.request.set_name("a");
  ASSERT_TRUE(cluster.Do(resume).replies.at(0).status.ok());
  const v1::CoordinatorMessage* const start = cluster.Last("worker-0", Kind::kStartRanks);
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(start->start_ranks().restore_path(), Found(7, 30, 5).path());
  EXPECT_EQ(start->start_ranks().restore_digest(), Found(7, 30, 5).digest());
  EXPECT_EQ(start->start_ranks().group_epoch(), 6u);
  cluster.StartRanks("a", 30);
  EXPECT_THAT(cluster.job("a").attempts, Contains(::testing::Key(8)));
}

TEST(Rebuild, WhatCannotBeIsRefusedByNameAndLeavesNoTrace) {
  struct Case {
    void (*spoil)(v1::RebuildJobRequest&);
    const char* field;
  };
  const Case cases[] = {
      {[](auto& r) { r.clear_checkpoints(); }, "checkpoints"},
      {[](auto& r) { r.mutable_checkpoints(1)->set_job("b"); }, "checkpoints[1]"},
      {[](auto& r) { r.mutable_checkpoints(1)->set_attempt(4); }, "checkpoints[1]"},
      {[](auto& r) { r.mutable_checkpoints(0)->set_attempt(0); }, "checkpoints[0]"},
      {[](auto& r) { r.mutable_checkpoints(0)->set_step(0); }, "checkpoints[0]"},
      {[](auto& r) { r.mutable_checkpoints(0)->set_path("/etc"); }, "checkpoints[0]"},
      {[](auto& r) { r.mutable_checkpoints(0)->set_path("a/step-1-epoch-1-attempt-1"); },
       "checkpoints[0]"},
      {[](auto& r) { r.mutable_checkpoints(0)->set_path("/f/../" + AttemptName(20, 3, 4, 1)); },
       "checkpoints[0]"},
      {[](auto& r) {
         r.mutable_checkpoints(0)->set_path("/folder/x/../a/" + AttemptName(20, 3, 4, 5));
       },
       "checkpoints[0]"},
      {[](auto& r) { r.mutable_checkpoints(0)->set_path("/folder/b/" + AttemptName(20, 3, 4, 5)); },
       "checkpoints[0]"},
      {[](auto& r) { r.mutable_checkpoints(0)->set_path("/other/a/" + AttemptName(20, 3, 4, 5)); },
       "checkpoints[0]"},
      {[](auto& r) { r.mutable_checkpoints(0)->set_path("/folder/a/" + AttemptName(20, 3, 5, 5)); },
       "checkpoints[0]"},
      {[](auto& r) { r.mutable_job()->mutable_checkpoint()->set_folder("/folder/.."); },
       "checkpoint.folder"},
      {[](auto& r) { r.mutable_job()->mutable_checkpoint()->clear_folder(); }, "checkpoint.folder"},
      {[](auto& r) { r.mutable_checkpoints(0)->set_digest(""); }, "checkpoints[0]"},
      {[](auto& r) { r.mutable_checkpoints(0)->set_state(v1::CHECKPOINT_STATE_DELETING); },
       "checkpoints[0]"},
  };
  TestCluster cluster;
  for (const Case& c : cases) {
    v1::RebuildJobRequest request = Request();
    c.spoil(request);
    const Status status = Rebuild(cluster, request).status;
    ASSERT_EQ(ViolationsOf(status).size(), 1u) << status;
    EXPECT_EQ(ViolationsOf(status)[0].field, c.field) << status;
  }
  EXPECT_TRUE(cluster.state().jobs.empty());
  ASSERT_TRUE(Rebuild(cluster, Request()).status.ok());
  const Status twice = Rebuild(cluster, Request()).status;
  ASSERT_EQ(ViolationsOf(twice).size(), 1u);
  EXPECT_EQ(ViolationsOf(twice)[0].field, "name");
}

TEST(Rebuild, ADirectoryThatAnotherJobUsesIsRefused) {
  TestCluster cluster;
  ASSERT_TRUE(Rebuild(cluster, Request()).status.ok());
  for (const std::string folder : {"/folder/a", "/folder/a/", "/folder/./a", "/folder/a/deep"}) {
    v1::RebuildJobRequest request;
    *request.mutable_job() = TestSpec("thief", 1, 100);
    request.mutable_job()->mutable_checkpoint()->set_folder(folder);
    v1::CheckpointRecord& record = *request.add_checkpoints();
    record = Found(4, 20);
    record.set_job("thief");
    record.set_path(folder + "/thief/" + AttemptName(20, 3, 4, 5));
    const Status refused = Rebuild(cluster, request).status;
    ASSERT_EQ(ViolationsOf(refused).size(), 1u) << folder << refused;
    EXPECT_EQ(ViolationsOf(refused)[0].field, "checkpoint.folder");
    EXPECT_THAT(ViolationsOf(refused)[0].description, HasSubstr("is used by job a"));
  }
  EXPECT_EQ(cluster.state().jobs.size(), 1u);
}

TEST(Rebuild, NoCheckpointIsVerifiedBecauseTheRequestStatesIt) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  v1::RebuildJobRequest request = Request();
  for (v1::CheckpointRecord& record : *request.mutable_checkpoints()) {
    record.set_verified(true);
    record.set_pinned(false);
    record.set_doubted_by("worker-7");
  }
  *request.add_checkpoints() = Found(9, 40, 5);
  request.mutable_checkpoints(2)->set_verified(true);
  request.mutable_job()->mutable_checkpoint()->set_keep_latest_k(2);
  ASSERT_TRUE(Rebuild(cluster, request).status.ok());
  const auto states_intact = [&] {
    for (const auto& [number, record] : cluster.job("a").checkpoints) {
      EXPECT_FALSE(record.verified()) << number;
      EXPECT_EQ(record.doubted_by(), "") << number;
      EXPECT_EQ(record.state(), v1::CHECKPOINT_STATE_COMMITTED) << number;
    }
  };
  states_intact();
  ResumeJobCall resume{cluster.next_call++, {}};
  resume.request.set_name("a");
  ASSERT_TRUE(cluster.Do(resume).replies.at(0).status.ok());
  cluster.StartRanks("a", 40);
  states_intact();  // retention deletes nothing before a worker has verified what supersedes it
}

Reply Pin(TestCluster& cluster, int64_t step, bool pinned) {
  PinCheckpointCall call{cluster.next_call++, {}};
  call.request.set_job("a");
  call.request.set_step(step);
  call.request.set_pinned(pinned);
  return cluster.Do(call).replies.at(0);
}

TEST(Pin, APinnedCommitOutlivesRetentionThroughARestartAndAnUnpinnedOneIsLetGoAtOnce) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  v1::JobSpec spec = TestSpec("a", 1, 100);
  spec.mutable_checkpoint()->set_interval(10);
  spec.mutable_checkpoint()->set_keep_latest_k(2);
  cluster.Submit(spec);
  cluster.StartRanks("a");
  int64_t newest = 0;
  const auto commit = [&](int64_t step) {
    ReportUpTo(cluster, newest + 1, step);
    newest = step;
    cluster.Commit("a", AttemptOf(cluster, step), step);
  };
  const auto states = [&] {
    std::map<int64_t, v1::CheckpointState> found;
    for (const auto& [number, record] : cluster.job("a").checkpoints) {
      found[record.step()] = record.state();
    }
    return found;
  };
  commit(10);
  EXPECT_EQ(Pin(cluster, 11, true).status.code(), StatusCode::kNotFound);
  const Reply pinned = Pin(cluster, 10, true);
  ASSERT_TRUE(pinned.status.ok());
  EXPECT_TRUE(std::get<v1::CheckpointRecord>(pinned.value).pinned());
  for (int64_t step = 20; step <= 40; step += 10) commit(step);
  EXPECT_EQ(states().at(20), v1::CHECKPOINT_STATE_COMMITTED) << "nothing newer is verified";
  cluster.VerifyAll("a");
  EXPECT_EQ(states().at(10), v1::CHECKPOINT_STATE_COMMITTED);
  EXPECT_FALSE(states().contains(20) && states().at(20) == v1::CHECKPOINT_STATE_COMMITTED);
  cluster.Restart();
  EXPECT_TRUE(cluster.job("a").checkpoints.begin()->second.pinned());
  ASSERT_TRUE(Pin(cluster, 10, false).status.ok());
  EXPECT_EQ(states().at(10), v1::CHECKPOINT_STATE_DELETING);
  EXPECT_THAT(cluster.Events("a"), Contains("CHECKPOINT_UNPINNED"));
}

}  // namespace
}  // namespace troupe
