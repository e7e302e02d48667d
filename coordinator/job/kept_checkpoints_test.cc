// Retention of older commits: newer ones are read back, then older ones deleted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

using Kind = v1::CoordinatorMessage;

// A job of one rank with due checkpoints every 10 steps; the policy keeps the newest two.
class Retention : public testing::Test {
 protected:
  Retention() { Run(2); }

  void Run(int64_t keep_latest_k) {
    cluster_ = std::make_unique<TestCluster>();
    newest_ = 0;
    cluster_->Connect("worker-0");
    v1::JobSpec spec = TestSpec("a", 1, 100);
    spec.mutable_checkpoint()->set_interval(10);
    spec.mutable_checkpoint()->set_keep_latest_k(keep_latest_k);
    cluster_->Submit(spec);
    cluster_->StartRanks("a");
  }
  // Commits all due checkpoints up to `step`.
  void CommitUpTo(int64_t step) {
    for (; newest_ < step; newest_ += 10) {
      ReportUpTo(*cluster_, newest_ + 1, newest_ + 10);
      attempts_[newest_ + 10] = AttemptOf(*cluster_, newest_ + 10);
      cluster_->Commit("a", attempts_[newest_ + 10], newest_ + 10);
    }
  }
  Effects Whole(int64_t step) { return cluster_->Verified("a", attempts_.at(step), true); }
  Effects Damaged(int64_t step) { return cluster_->Verified("a", attempts_.at(step), false, true); }
  // Reports the damage twice: on a single host the second reading decides.
  Effects DamagedTwice(int64_t step) {
    Damaged(step);
    return Damaged(step);
  }
  Effects Unreadable(int64_t step) { return cluster_->Verified("a", attempts_.at(step), false); }
  const v1::CheckpointRecord& Record(int64_t step) {
    return cluster_->job("a").checkpoints.at(attempts_.at(step));
  }
  std::vector<int64_t> Steps(v1::CheckpointState state) {
    std::vector<int64_t> steps;
    for (const auto& [number, record] : cluster_->job("a").checkpoints) {
      if (record.state() == state) steps.push_back(record.step());
    }
    return steps;
  }
  // Steps of the commits that the worker was asked to read back, in order.
  std::vector<int64_t> Asked(const std::string& worker = "worker-0") {
    std::vector<int64_t> steps;
    for (const v1::CoordinatorMessage& message : cluster_->worker(worker).inbox) {
      if (!message.has_verify_checkpoint()) continue;
      const v1::VerifyCheckpoint& verify = message.verify_checkpoint();
      const v1::CheckpointRecord& record = cluster_->job("a").checkpoints.at(verify.attempt());
      EXPECT_EQ(verify.job(), "a");
      EXPECT_EQ(verify.path(), record.path());
      EXPECT_EQ(verify.digest(), record.digest());
      steps.push_back(record.step());
    }
    return steps;
  }

  std::unique_ptr<TestCluster> cluster_;
  int64_t newest_ = 0;
  std::map<int64_t, int64_t> attempts_;  // by step
};

TEST_F(Retention, ReadsTheNewestBackThenDeletesThroughATombstone) {
  CommitUpTo(20);
  EXPECT_THAT(Asked(), IsEmpty()) << "there is nothing to delete";
  CommitUpTo(30);
  EXPECT_THAT(Asked(), ElementsAre(30, 20));
  EXPECT_THAT(Steps(v1::CHECKPOINT_STATE_COMMITTED), ElementsAre(10, 20, 30));
  Whole(20);
  EXPECT_TRUE(Record(20).verified());
  EXPECT_THAT(Steps(v1::CHECKPOINT_STATE_COMMITTED), ElementsAre(10, 20, 30));
  EXPECT_EQ(cluster_->Count("worker-0", Kind::kDeleteCheckpoint), 0);
  const Effects effects = Whole(30);
  EXPECT_THAT(effects.failpoints_after,
              ElementsAre("catalog.verified.recorded", "catalog.tombstone.recorded"));
  EXPECT_THAT(Steps(v1::CHECKPOINT_STATE_COMMITTED), ElementsAre(20, 30));
  EXPECT_THAT(Steps(v1::CHECKPOINT_STATE_DELETING), ElementsAre(10));
  EXPECT_EQ(cluster_->Count("worker-0", Kind::kDeleteCheckpoint), 1);
  CommitUpTo(40);
  EXPECT_THAT(Asked(), ElementsAre(30, 20, 40)) << "each once";
  Whole(40);
  EXPECT_THAT(Steps(v1::CHECKPOINT_STATE_COMMITTED), ElementsAre(30, 40));
  // The tombstones outlive the coordinator, and the requests are resent to the worker when it comes
  // back.
  cluster_->Restart();
  cluster_->Reconnect("worker-0");
  EXPECT_EQ(cluster_->Count("worker-0", Kind::kDeleteCheckpoint), 2);
  EXPECT_THAT(Asked(), IsEmpty());
  EXPECT_TRUE(Record(30).verified() && Record(40).verified());
}

TEST_F(Retention, ReadsAndDeletesBeneathTheRootsOfTheNewestGroup) {
  cluster_->state().jobs.at("a").last_group.mutable_roots()->set_checkpoints("/ck");
  CommitUpTo(30);
  const v1::CoordinatorMessage* const read = cluster_->Last("worker-0", Kind::kVerifyCheckpoint);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->verify_checkpoint().roots().checkpoints(), "/ck");
  Whole(20);
  Whole(30);
  const v1::CoordinatorMessage* const erase = cluster_->Last("worker-0", Kind::kDeleteCheckpoint);
  ASSERT_NE(erase, nullptr);
  EXPECT_EQ(erase->delete_checkpoint().roots().checkpoints(), "/ck");
}

TEST_F(Retention, OfEverythingReadsNothingBack) {
  Run(0);
  CommitUpTo(60);
  EXPECT_THAT(Asked(), IsEmpty());
  EXPECT_EQ(Steps(v1::CHECKPOINT_STATE_COMMITTED).size(), 6u);
}

TEST_F(Retention, ADamagedCommitIsQuarantinedAndTheOlderOnesStay) {
  CommitUpTo(30);
  Damaged(20);
  EXPECT_EQ(Record(20).state(), v1::CHECKPOINT_STATE_COMMITTED) << "it is read once more";
  const Effects effects = Damaged(20);
  EXPECT_EQ(Record(20).state(), v1::CHECKPOINT_STATE_QUARANTINED);
  EXPECT_EQ(Record(20).reason(), "worker-0 read it twice: rank-00000.safetensors: a reason");
  EXPECT_THAT(cluster_->Events("a"), Contains("CHECKPOINT_QUARANTINED"));
  EXPECT_EQ(effects.measurements.size(), 2u);
  Whole(30);
  EXPECT_THAT(Steps(v1::CHECKPOINT_STATE_COMMITTED), ElementsAre(10, 30));
  EXPECT_EQ(cluster_->Count("worker-0", Kind::kDeleteCheckpoint), 0);
  // The next commit replaces the damaged one.
  CommitUpTo(40);
  EXPECT_THAT(Asked(), ElementsAre(30, 20, 20, 40));
  Whole(40);
  EXPECT_THAT(Steps(v1::CHECKPOINT_STATE_COMMITTED), ElementsAre(30, 40));
  EXPECT_THAT(Steps(v1::CHECKPOINT_STATE_DELETING), ElementsAre(10));
  EXPECT_EQ(Record(20).state(), v1::CHECKPOINT_STATE_QUARANTINED) << "it is kept for a look at it";
}

TEST_F(Retention, AnOlderCommitReplacesADamagedOne) {
  CommitUpTo(40);  // nothing was answered so far
  DamagedTwice(40);
  EXPECT_EQ(Record(40).state(), v1::CHECKPOINT_STATE_QUARANTINED);
  EXPECT_THAT(Asked(), ElementsAre(30, 20, 40, 40)) << "30 and 20 are asked for already";
  Whole(30);
  Whole(20);
  EXPECT_THAT(Steps(v1::CHECKPOINT_STATE_DELETING), ElementsAre(10));
  // Nobody asked again: an unrequested answer changes nothing.
  DamagedTwice(20);
  EXPECT_EQ(Record(20).state(), v1::CHECKPOINT_STATE_COMMITTED);
  EXPECT_TRUE(Record(20).verified());
}

TEST_F(Retention, WhatCouldNotBeReadIsAskedForAgainAfterTheNextCommit) {
  CommitUpTo(30);
  Whole(20);
  Unreadable(30);
  EXPECT_THAT(cluster_->Events("a"), Contains("CHECKPOINT_UNREADABLE"));
  EXPECT_EQ(Record(30).state(), v1::CHECKPOINT_STATE_COMMITTED);
  EXPECT_FALSE(Record(30).verified());
  EXPECT_THAT(Asked(), ElementsAre(30, 20)) << "not at once";
  EXPECT_EQ(cluster_->Count("worker-0", Kind::kDeleteCheckpoint), 0);
  CommitUpTo(40);
  EXPECT_THAT(Asked(), ElementsAre(30, 20, 40, 30));
  Whole(30);
  Whole(40);
  EXPECT_THAT(Steps(v1::CHECKPOINT_STATE_COMMITTED), ElementsAre(30, 40));
}

TEST_F(Retention, AsksAgainOnEveryNewStreamAndNotTwiceOnOne) {
  CommitUpTo(40);
  EXPECT_THAT(Asked(), ElementsAre(30, 20, 40)) << "which is in flight";
  cluster_->Disconnect("worker-0");
  cluster_->worker("worker-0").inbox.clear();
  cluster_->Reconnect("worker-0");
  EXPECT_THAT(Asked(), ElementsAre(40, 30));
  cluster_->Restart();
  cluster_->Reconnect("worker-0");
  EXPECT_THAT(Asked(), ElementsAre(40, 30));
  Whole(40);
  Whole(30);
  cluster_->Reconnect("worker-0");
  EXPECT_THAT(Asked(), ElementsAre(40, 30));
  EXPECT_THAT(Steps(v1::CHECKPOINT_STATE_COMMITTED), ElementsAre(30, 40));
}

TEST_F(Retention, OfAJobThatHasEndedGoesOn) {
  CommitUpTo(100);
  EXPECT_EQ(cluster_->job("a").record.state(), v1::JOB_STATE_SUCCEEDED);
  cluster_->VerifyAll("a");
  EXPECT_THAT(Steps(v1::CHECKPOINT_STATE_COMMITTED), ElementsAre(90, 100));
  EXPECT_GE(cluster_->Count("worker-0", Kind::kDeleteCheckpoint), 8);
}

TEST_F(Retention, AnAnswerThatIsStaleChangesNothing) {
  CommitUpTo(30);
  v1::WorkerMessage message;
  v1::CheckpointVerified* const verified = message.mutable_checkpoint_verified();
  verified->set_job("a");
  verified->set_attempt(attempts_.at(30));
  verified->set_path("/ck/elsewhere");
  verified->set_damaged(true);
  cluster_->SendFrom("worker-0", message);
  verified->set_ok(true);
  verified->set_damaged(false);
  cluster_->SendFrom("worker-0", message);
  EXPECT_EQ(Record(30).state(), v1::CHECKPOINT_STATE_COMMITTED);
  EXPECT_FALSE(Record(30).verified());
  DamagedTwice(30);
  Whole(30);
  EXPECT_EQ(Record(30).state(), v1::CHECKPOINT_STATE_QUARANTINED);
  EXPECT_FALSE(Record(30).verified());
  CommitUpTo(40);
  cluster_->VerifyAll("a");
  ASSERT_EQ(Record(10).state(), v1::CHECKPOINT_STATE_DELETING);
  Damaged(10);
  EXPECT_EQ(Record(10).state(), v1::CHECKPOINT_STATE_DELETING);
  verified->set_job("b");
  cluster_->SendFrom("worker-0", message);
  verified->set_job("a");
  verified->set_attempt(1000);
  cluster_->SendFrom("worker-0", message);
  EXPECT_THAT(cluster_->Events("a"), Not(Contains("CHECKPOINT_UNREADABLE")));
}

TEST_F(Retention, AsksTheWorkerThatHasRankZeroNow) {
  CommitUpTo(30);
  cluster_->Connect("worker-1");
  cluster_->Disconnect("worker-0");
  for (int second = 0; second < 10; ++second) {
    cluster_->Heartbeat();
    cluster_->Pass(std::chrono::seconds(1));
  }
  ASSERT_EQ(cluster_->job("a").last_group.ranks(0).worker(), "worker-1");
  cluster_->StartRanks("a", 30);
  EXPECT_THAT(Asked("worker-1"), ElementsAre(30, 20));
}

TEST_F(Retention, ACommitThatIsLiftedIsPinnedWhereItWouldGoAtOnce) {
  for (const bool retired : {true, false}) {
    Run(2);
    CommitUpTo(30);
    DamagedTwice(20);
    ASSERT_EQ(Record(20).state(), v1::CHECKPOINT_STATE_QUARANTINED);
    CommitUpTo(retired ? 60 : 30);
    cluster_->VerifyAll("a");
    LiftQuarantineCall call{cluster_->next_call++, {}};
    call.request.set_path(Record(20).path());
    call.request.set_digest(Record(20).digest());
    const Effects effects = cluster_->Do(call);
    ASSERT_EQ(effects.replies.size(), 1u);
    EXPECT_TRUE(effects.replies[0].status.ok()) << effects.replies[0].status;
    EXPECT_EQ(Record(20).state(), v1::CHECKPOINT_STATE_COMMITTED);
    EXPECT_EQ(Record(20).pinned(), retired);
  }
}

}  // namespace
}  // namespace troupe
