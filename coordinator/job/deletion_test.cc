// Tests the deletion of ended jobs: `troupe delete`, --keep-ended.
#include "coordinator/job/deletion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "coordinator/job/kept_checkpoints.h"
#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr CallId kDeletionCall = 900;

Effects Delete(TestCluster& cluster, bool checkpoints, const std::string& job = "a") {
  DeleteJobCall call{kDeletionCall, {}};
  call.request.set_name(job);
  call.request.set_checkpoints(checkpoints);
  return cluster.Do(call);
}

void Cancel(TestCluster& cluster, const std::string& job = "a") {
  CancelJobCall call{901, {}};
  call.request.set_name(job);
  cluster.Do(call);
}

void PassSeconds(TestCluster& cluster, int seconds) {
  for (int second = 0; second < seconds; ++second) {
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
  }
}

// Job `a` on worker-0 with commits of steps 10 and 20, cancelled, its rank gone.
void CancelledJob(TestCluster& cluster) {
  RunJob(cluster, 1, 1);
  for (const int64_t step : {10, 20}) {
    ReportUpTo(cluster, step - 9, step);
    cluster.Commit("a", AttemptOf(cluster, step), step);
  }
  Cancel(cluster);
  cluster.StopRanks("a", 1, {"worker-0"});
  // The aborted attempts of due checkpoints are deleted.
  while (!cluster.job("a").checkpoints.empty()) {
    const auto& last = *cluster.job("a").checkpoints.rbegin();
    if (last.second.state() != v1::CHECKPOINT_STATE_ABORTED) break;
    cluster.Deleted("a", last.first);
  }
}

std::vector<std::string> KeysOf(const MemoryStore& store, const std::string& job) {
  std::vector<std::string> keys;
  EXPECT_TRUE(store
                  .Scan("", "",
                        [&](std::string_view key, std::string_view) {
                          if (key.find("/" + job) != std::string_view::npos) keys.emplace_back(key);
                          return true;
                        })
                  .ok());
  return keys;
}

TEST(DeleteJob, TakesEveryRowOfTheJobAndNothingElse) {
  TestCluster cluster;
  CancelledJob(cluster);
  cluster.Submit(TestSpec("ab", 1, 10), "request of ab");
  const std::vector<std::string> others = KeysOf(cluster.store(), "ab");
  ASSERT_FALSE(KeysOf(cluster.store(), "a").empty());
  const Effects effects = Delete(cluster, false);
  ASSERT_EQ(effects.replies.size(), 1u);
  EXPECT_TRUE(effects.replies[0].status.ok()) << effects.replies[0].status;
  EXPECT_THAT(effects.forgotten_jobs, ElementsAre("a"));
  EXPECT_EQ(KeysOf(cluster.store(), "a"), others);
  ASSERT_EQ(effects.messages.size(), 1u) << "its checkpoints stay where they are";
  const v1::CoordinatorMessage& message = effects.messages[0].message;
  EXPECT_EQ(message.forget_job().job(), "a") << "its logs go";
  cluster.Restart();
  EXPECT_EQ(cluster.state().jobs.size(), 1u);
  EXPECT_TRUE(cluster.state().jobs.contains("ab"));
  // The name can be used again.
  EXPECT_TRUE(cluster.Submit(TestSpec("a", 1, 10)).status.ok());
}

// Workers drop messages with an epoch that is not above the highest one known for the job's name.
TEST(DeleteJob, AJobOfTheSameNameTakesUpNoEpochOfTheDeletedOne) {
  TestCluster cluster;
  CancelledJob(cluster);
  const uint64_t last = cluster.job("a").record.group_epoch();
  ASSERT_GE(last, 1u);
  ASSERT_TRUE(Delete(cluster, false).replies.at(0).status.ok());
  cluster.Restart();
  cluster.Reconnect("worker-0");
  ASSERT_TRUE(cluster.Submit(TestSpec("a", 1, 10)).status.ok());
  EXPECT_EQ(cluster.job("a").record.group_epoch(), last + 1) << "its first group starts";
  // The floor applies to every name, because deleted names are not remembered.
  ASSERT_TRUE(cluster.Submit(TestSpec("b", 1, 10)).status.ok());
  EXPECT_EQ(cluster.job("b").record.group_epoch(), last) << "it waits for the device";
}

TEST(DeleteJob, ARequestThatCreatesOnlyOnceStaysUsedWhenItsJobIsGone) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.SubmitOnce(TestSpec("a", 1, 10), "uid").status.ok());
  ASSERT_TRUE(cluster.Submit(TestSpec("b", 1, 10), "other").status.ok());
  for (const char* const job : {"a", "b"}) {
    Cancel(cluster, job);
    ASSERT_TRUE(Delete(cluster, false, job).replies.at(0).status.ok());
  }
  for (int life = 0; life < 2; ++life) {
    const Reply again = cluster.SubmitOnce(TestSpec("a", 1, 10), "uid");
    EXPECT_EQ(again.status.code(), StatusCode::kAlreadyExists);
    EXPECT_THAT(std::string(Message(again.status)), HasSubstr("job a, and that was removed"));
    cluster.Restart();
  }
  EXPECT_TRUE(cluster.Submit(TestSpec("b", 1, 10), "other").status.ok());
  EXPECT_EQ(cluster.state().used_requests.size(), 1u);
}

TEST(DeleteJob, OnlyTheNewestUsedRequestsAreKept) {
  TestCluster cluster;
  for (int i = 0; i < 10'000; ++i) {
    cluster.state().used_requests[fmt::format("uid-{:05}", i)].set_removed_wall_time_ns(i == 7 ? 1
                                                                                               : 2);
  }
  cluster.wall_ns = 3;
  ASSERT_TRUE(cluster.SubmitOnce(TestSpec("a", 1, 10), "uid").status.ok());
  Cancel(cluster, "a");
  ASSERT_TRUE(Delete(cluster, false).replies.at(0).status.ok());
  EXPECT_EQ(cluster.state().used_requests.size(), 10'000u);
  EXPECT_TRUE(cluster.state().used_requests.contains("uid"));
  EXPECT_FALSE(cluster.state().used_requests.contains("uid-00007"));
}

TEST(DeleteJob, AJobThatHasNotEndedStays) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  EXPECT_THAT(std::string(Message(Delete(cluster, false).replies.at(0).status)),
              HasSubstr("job a is RUNNING: cancel it first"));
  Cancel(cluster);
  EXPECT_THAT(std::string(Message(Delete(cluster, false).replies.at(0).status)),
              HasSubstr("one of its ranks may still be running"));
  EXPECT_EQ(Delete(cluster, false, "b").replies.at(0).status.code(), StatusCode::kNotFound);
}

TEST(DeleteJob, WithItsCheckpointsItGoesOnceTheyAreGone) {
  TestCluster cluster;
  CancelledJob(cluster);
  EXPECT_THAT(Delete(cluster, true).replies, IsEmpty());
  EXPECT_GE(cluster.Count("worker-0", v1::CoordinatorMessage::kDeleteCheckpoint), 2);
  ResumeJobCall resume{902, {}};
  resume.request.set_name("a");
  EXPECT_THAT(std::string(Message(cluster.Do(resume).replies.at(0).status)),
              HasSubstr("is being deleted"));
  // The coordinator restarts, and the request is resent to the worker.
  cluster.Restart();
  cluster.worker("worker-0").held.clear();
  cluster.Reconnect("worker-0");
  std::vector<int64_t> attempts;
  for (const auto& [number, record] : cluster.job("a").checkpoints) attempts.push_back(number);
  ASSERT_EQ(attempts.size(), 2u);
  cluster.Deleted("a", attempts[0]);
  EXPECT_TRUE(cluster.state().jobs.contains("a"));
  Delete(cluster, true);
  const Effects effects = cluster.Deleted("a", attempts[1]);
  ASSERT_EQ(effects.replies.size(), 1u);
  EXPECT_EQ(effects.replies[0].call, kDeletionCall);
  EXPECT_TRUE(effects.replies[0].status.ok());
  EXPECT_THAT(KeysOf(cluster.store(), "a"), IsEmpty());
}

TEST(DeleteJob, WhatIsNotGoneIsAskedForAgain) {
  constexpr auto kDelete = v1::CoordinatorMessage::kDeleteCheckpoint;
  TestCluster cluster;
  CancelledJob(cluster);
  Delete(cluster, true);
  for (const bool restarted : {false, true}) {
    if (restarted) {
      cluster.Restart();
      cluster.worker("worker-0").held.clear();
      cluster.Reconnect("worker-0");
    }
    // The worker's mount has failed, so it does not answer.
    for (int minute = 0; minute < 2; ++minute) {
      cluster.worker("worker-0").inbox.clear();
      for (int i = 0; i < 61; ++i) {
        cluster.Heartbeat();
        cluster.Pass(std::chrono::seconds(1));
      }
      EXPECT_EQ(cluster.Count("worker-0", kDelete), 2) << restarted << minute;
    }
  }
}

TEST(DeleteJob, WhoseFilesAreNotRemovedInTimeStaysAndCanStillBeDeletedWithoutThem) {
  TestCluster cluster;
  CancelledJob(cluster);
  EXPECT_THAT(Delete(cluster, true).replies, IsEmpty());
  const size_t before = cluster.replies.size();
  PassSeconds(cluster, 301);
  ASSERT_EQ(cluster.replies.size(), before + 1);
  EXPECT_EQ(cluster.replies.back().call, kDeletionCall);
  EXPECT_EQ(cluster.replies.back().status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(Message(cluster.replies.back().status)),
              HasSubstr("worker-0 has not confirmed that 2 checkpoint attempts are removed"));
  EXPECT_TRUE(cluster.state().jobs.contains("a"));
  const Effects effects = Delete(cluster, false);
  ASSERT_EQ(effects.replies.size(), 1u);
  EXPECT_TRUE(effects.replies[0].status.ok()) << effects.replies[0].status;
  EXPECT_THAT(KeysOf(cluster.store(), "a"), IsEmpty());
}

// Job `a` is cancelled, with files of an aborted attempt that worker-0 was asked to remove.
void CancelledJobWithLeftFiles(TestCluster& cluster) {
  RunJob(cluster, 1, 1);
  ReportUpTo(cluster, 1, 10);
  Cancel(cluster);
  cluster.StopRanks("a", 1, {"worker-0"});
  ASSERT_FALSE(cluster.job("a").checkpoints.empty());
}

TEST(DeleteJob, WithoutItsCheckpointsItWaitsForLeftFilesButNotForEver) {
  for (const bool restarts : {false, true}) {
    TestCluster cluster;
    CancelledJobWithLeftFiles(cluster);
    EXPECT_THAT(Delete(cluster, false).replies, IsEmpty());
    if (restarts) {
      cluster.Restart();
      cluster.worker("worker-0").held.clear();
      cluster.Reconnect("worker-0");
    }
    EXPECT_TRUE(cluster.state().jobs.contains("a"));
    PassSeconds(cluster, restarts ? 301 : 21);
    EXPECT_THAT(cluster.state().jobs, IsEmpty());
    EXPECT_EQ(cluster.replies.back().call == kDeletionCall, !restarts)
        << "a new leader knows no caller";
  }
}

// The reply to `call`; null if there is none.
const Reply* ReplyToCall(const TestCluster& cluster, CallId call) {
  for (const Reply& reply : cluster.replies) {
    if (reply.call == call) return &reply;
  }
  return nullptr;
}

CallId DeleteAs(CallId call, TestCluster& cluster, bool checkpoints) {
  DeleteJobCall what{call, {}};
  what.request.set_name("a");
  what.request.set_checkpoints(checkpoints);
  cluster.Do(what);
  return call;
}

// Job `a` is cancelled, with a commit and the files of aborted attempts.
void CancelledJobWithACommitAndLeftFiles(TestCluster& cluster) {
  RunJob(cluster, 1, 1);
  ReportUpTo(cluster, 1, 10);
  cluster.Commit("a", AttemptOf(cluster, 10), 10);
  ReportUpTo(cluster, 11, 20);
  Cancel(cluster);
  cluster.StopRanks("a", 1, {"worker-0"});
}

TEST(DeleteJob, WithItsCheckpointsFindsThemWhileAnotherCallLeavesThem) {
  for (const bool restarts : {false, true}) {
    TestCluster cluster;
    CancelledJobWithACommitAndLeftFiles(cluster);
    const CallId plain = DeleteAs(910, cluster, false);
    ASSERT_EQ(ReplyToCall(cluster, plain), nullptr) << "it waits for the files";
    if (restarts) {
      cluster.Restart();
      cluster.worker("worker-0").held.clear();
      cluster.Reconnect("worker-0");
    }
    const CallId whole = DeleteAs(911, cluster, true);
    while (cluster.state().jobs.contains("a")) {
      ASSERT_EQ(ReplyToCall(cluster, whole), nullptr);
      const int64_t attempt = cluster.job("a").checkpoints.begin()->first;
      EXPECT_EQ(cluster.job("a").checkpoints.begin()->second.state(), v1::CHECKPOINT_STATE_DELETING)
          << "the commit is removed too";
      cluster.Deleted("a", attempt);
    }
    ASSERT_NE(ReplyToCall(cluster, whole), nullptr);
    EXPECT_TRUE(ReplyToCall(cluster, whole)->status.ok());
    EXPECT_EQ(ReplyToCall(cluster, plain) != nullptr, !restarts);
    EXPECT_THAT(KeysOf(cluster.store(), "a"), IsEmpty());
  }
}

TEST(DeleteJob, WithItsCheckpointsReportsThatAnotherCallHasLeftThem) {
  TestCluster cluster;
  CancelledJobWithACommitAndLeftFiles(cluster);
  const CallId whole = DeleteAs(910, cluster, true);
  const CallId plain = DeleteAs(911, cluster, false);
  ASSERT_NE(ReplyToCall(cluster, whole), nullptr);
  EXPECT_EQ(ReplyToCall(cluster, whole)->status.code(), StatusCode::kAborted);
  EXPECT_THAT(std::string(Message(ReplyToCall(cluster, whole)->status)),
              HasSubstr("another call has deleted job a without its checkpoints, of which 1 may "
                        "remain; /ck/a/step-00000010-epoch-1-attempt-1-at-0 is among them"))
      << "aborted attempts are no checkpoints";
  EXPECT_TRUE(ReplyToCall(cluster, plain)->status.ok());
  EXPECT_THAT(cluster.state().jobs, IsEmpty());
}

TEST(DeleteJob, WithItsCheckpointsSucceedsIfAnotherCallHasLeftOnlyAbortedAttempts) {
  TestCluster cluster;
  CancelledJobWithLeftFiles(cluster);
  const CallId whole = DeleteAs(910, cluster, true);
  ASSERT_EQ(ReplyToCall(cluster, whole), nullptr) << "it waits for the files";
  DeleteAs(911, cluster, false);
  ASSERT_NE(ReplyToCall(cluster, whole), nullptr);
  EXPECT_TRUE(ReplyToCall(cluster, whole)->status.ok()) << ReplyToCall(cluster, whole)->status;
  EXPECT_THAT(cluster.state().jobs, IsEmpty());
}

void AddAttempt(Job& job, int64_t attempt, v1::CheckpointState state) {
  v1::CheckpointRecord& record = job.checkpoints[attempt];
  record.set_job("a");
  record.set_attempt(attempt);
  record.set_path(fmt::format("/none/a/step-00000001-epoch-1-attempt-{}-at-1", attempt));
  record.set_state(state);
}

TEST(Deletions, OfManyAttemptsAreAskedForInPartsAndNotForEachRankThatStops) {
  constexpr auto kDelete = v1::CoordinatorMessage::kDeleteCheckpoint;
  TestCluster cluster;
  RunJob(cluster, 4, 4);
  Job& job = cluster.state().jobs.at("a");
  for (int64_t attempt = 1001; attempt <= 1250; ++attempt)
    AddAttempt(job, attempt, v1::CHECKPOINT_STATE_DELETING);
  Cancel(cluster);
  cluster.StopRanks("a", 1, {"worker-0", "worker-1", "worker-2", "worker-3"});
  EXPECT_EQ(cluster.Count("worker-0", kDelete), kMostDeletionsAsked);
  while (!cluster.job("a").deletions.empty())
    cluster.Deleted("a", cluster.job("a").deletions.begin()->first);
  EXPECT_THAT(cluster.job("a").checkpoints, IsEmpty());
  EXPECT_LT(cluster.Count("worker-0", kDelete), 270) << "hardly any was asked for twice";
}

constexpr int64_t kNewestAttempt = 2000;

// Job `a` is cancelled, with many aborted attempts that worker-0 cannot remove, and kNewestAttempt.
void CancelledJobWithManyLeftFiles(TestCluster& cluster) {
  RunJob(cluster, 1, 1);
  Job& job = cluster.state().jobs.at("a");
  std::vector<int64_t> attempts = {kNewestAttempt};
  for (int64_t attempt = 1001; attempt <= 1240; ++attempt) attempts.push_back(attempt);
  for (const int64_t attempt : attempts) AddAttempt(job, attempt, v1::CHECKPOINT_STATE_ABORTED);
  Cancel(cluster);
  cluster.StopRanks("a", 1, {"worker-0"});
}

// Returns how often worker-0 was asked to remove each attempt.
std::map<int64_t, int> RemovalsAsked(TestCluster& cluster) {
  std::map<int64_t, int> asked;
  for (const v1::CoordinatorMessage& message : cluster.worker("worker-0").inbox) {
    if (message.has_delete_checkpoint()) ++asked[message.delete_checkpoint().attempt()];
  }
  return asked;
}

TEST(Deletions, ThatAreNeverAnsweredDoNotHoldUpOthers) {
  TestCluster cluster;
  CancelledJobWithManyLeftFiles(cluster);
  EXPECT_EQ(std::ssize(RemovalsAsked(cluster)), kMostDeletionsAsked);
  EXPECT_FALSE(RemovalsAsked(cluster).contains(kNewestAttempt));
  PassSeconds(cluster, 120);
  EXPECT_TRUE(RemovalsAsked(cluster).contains(kNewestAttempt));
  cluster.Deleted("a", kNewestAttempt);
  EXPECT_FALSE(cluster.job("a").checkpoints.contains(kNewestAttempt));
}

TEST(Deletions, OfAnEndedJobCostNoDeadlineOnceAllWereAskedFor) {
  TestCluster cluster;
  CancelledJobWithManyLeftFiles(cluster);
  EXPECT_TRUE(cluster.job("a").delete_again_time.has_value());
  PassSeconds(cluster, 600);
  EXPECT_EQ(RemovalsAsked(cluster).size(), cluster.job("a").checkpoints.size());
  EXPECT_LE(cluster.Count("worker-0", v1::CoordinatorMessage::kDeleteCheckpoint),
            2 * kMostDeletionsAsked);
  EXPECT_FALSE(cluster.job("a").delete_again_time.has_value());
  EXPECT_FALSE(cluster.state().index.active().contains("a"));
}

TEST(Deletions, GoOnOnANewStreamWithThoseThatWereNotAskedForYet) {
  TestCluster cluster;
  CancelledJobWithManyLeftFiles(cluster);
  const std::map<int64_t, int> before = RemovalsAsked(cluster);
  PassSeconds(cluster, 1);
  cluster.Disconnect("worker-0");
  cluster.worker("worker-0").inbox.clear();
  cluster.Reconnect("worker-0");
  const std::map<int64_t, int> after = RemovalsAsked(cluster);
  EXPECT_EQ(std::ssize(after), kMostDeletionsAsked);
  EXPECT_TRUE(after.contains(kNewestAttempt));
  EXPECT_TRUE(after.contains(before.begin()->first)) << "the oldest request is the next";
  EXPECT_FALSE(after.contains(before.rbegin()->first));
  PassSeconds(cluster, 180);
  EXPECT_TRUE(RemovalsAsked(cluster).contains(before.rbegin()->first));
}

TEST(KeepEnded, DoesNotKeepAJobWhoseLeftFilesAreNeverRemoved) {
  TestCluster cluster;
  CancelledJobWithLeftFiles(cluster);
  cluster.state().options.keep_ended.count = 0;
  PassSeconds(cluster, 62);
  EXPECT_TRUE(cluster.state().jobs.contains("a"));
  PassSeconds(cluster, 301);
  EXPECT_THAT(cluster.state().jobs, IsEmpty());
}

TEST(DeleteJob, APinnedCheckpointIsNotDeleted) {
  TestCluster cluster;
  CancelledJob(cluster);
  PinCheckpointCall pin{903, {}};
  pin.request.set_job("a");
  pin.request.set_step(10);
  pin.request.set_pinned(true);
  cluster.Do(pin);
  EXPECT_THAT(std::string(Message(Delete(cluster, true).replies.at(0).status)),
              HasSubstr("step 10 of job a is pinned"));
  EXPECT_TRUE(Delete(cluster, false).replies.at(0).status.ok());
}

TEST(DeleteJob, ARowPutLaterInTheSameBatchStays) {
  MemoryStore store;
  CatalogBatch before;
  v1::JobRecord record;
  record.set_id("a");
  before.PutJob(record);
  before.PutEvent("a", 1, {});
  ASSERT_TRUE(WriteCatalog(before, &store).ok());
  CatalogBatch first, second;
  first.PutEvent("a", 2, {});
  first.DeleteJob("a");
  second.PutEvent("a", 3, {});
  first.Append(second);
  ASSERT_TRUE(WriteCatalog(first, &store).ok());
  EXPECT_THAT(KeysOf(store, "a"), ElementsAre("event/a/0000000000000003"));
}

TEST(DeleteJob, NoKindOfRowIsLeft) {
  MemoryStore store;
  CatalogBatch rows;
  v1::JobRecord record;
  record.set_id("a");
  v1::CheckpointRecord checkpoint;
  checkpoint.set_job("a");
  rows.PutJob(record);
  rows.PutSpec("a", {});
  rows.PutPlan("a", {});
  rows.PutSmallerLayout("a", {});
  rows.PutGroup("a", {});
  rows.PutTally("a", {});
  rows.PutImages("a", {});
  rows.PutStep("a", {});
  rows.PutEvent("a", 1, {});
  rows.PutCheckpoint(checkpoint);
  ASSERT_TRUE(WriteCatalog(rows, &store).ok());
  ASSERT_EQ(KeysOf(store, "a").size(), 10u);
  CatalogBatch deletion;
  deletion.DeleteJob("a");
  ASSERT_TRUE(WriteCatalog(deletion, &store).ok());
  EXPECT_THAT(KeysOf(store, "a"), IsEmpty());
}

TEST(KeepEnded, LetsGoOfThoseThatEndedFirst) {
  TestCluster cluster;
  for (const char* id : {"a", "b", "c", "d"}) {
    cluster.wall_ns += 1'000'000'000;
    cluster.Submit(TestSpec(id, 1, 10));
  }
  for (const char* id : {"c", "a", "b"}) {
    cluster.wall_ns += 1'000'000'000;
    Cancel(cluster, id);
  }
  const auto dropped = [&](const KeepEnded& keep) {
    return EndedJobsToDrop(cluster.state().jobs, cluster.state().fleet, keep, cluster.wall_ns);
  };
  EXPECT_THAT(dropped({}), IsEmpty());
  EXPECT_THAT(dropped({.count = 1}), ElementsAre("c", "a"));
  EXPECT_THAT(dropped({.age = std::chrono::seconds(1)}), ElementsAre("c"));
  cluster.state().options.keep_ended.count = 1;
  cluster.wall_ns += 1'000'000'000;
  Cancel(cluster, "d");
  EXPECT_EQ(cluster.state().jobs.size(), 1u);
  EXPECT_TRUE(cluster.state().jobs.contains("d"));
}

TEST(KeepEnded, ATimeIsLookedAtEveryMinute) {
  TestCluster cluster;
  cluster.state().options.keep_ended.age = std::chrono::seconds(90);
  cluster.Submit(TestSpec("a", 1, 10));
  Cancel(cluster);
  for (int i = 0; i < 3 && !cluster.state().jobs.empty(); ++i) {
    cluster.wall_ns += 61'000'000'000;
    cluster.Pass(std::chrono::seconds(61));
  }
  EXPECT_THAT(cluster.state().jobs, IsEmpty());
}

}  // namespace
}  // namespace troupe
