// Tests commits that a worker found damaged, and which workers may confirm it.
#include "coordinator/job/doubts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = v1::CoordinatorMessage;

class Doubts : public ::testing::Test {
 protected:
  // Job `a` has commits of steps 10 and 20; its rank 0 has crashed and is started again.
  void RunAndRecover(int ranks, int workers) {
    RunJob(cluster_, ranks, workers);
    ReportUpTo(cluster_, 1, 10);
    cluster_.Commit("a", 1, 10);
    ReportUpTo(cluster_, 11, 20);
    cluster_.Commit("a", 2, 20);
    Crash();
  }
  void Crash() {
    const uint64_t epoch = job().record.group_epoch();
    const auto placements = job().last_group.ranks();
    cluster_.Crash("a", 0);
    for (const v1::RankPlacement& placement : placements) {
      if (placement.rank() > 0) cluster_.StopRanks("a", epoch, {placement.worker()});
    }
    cluster_.Pass(std::chrono::milliseconds(600));
  }
  const Job& job() { return cluster_.job("a"); }
  const v1::CheckpointRecord& commit(int64_t attempt) { return job().checkpoints.at(attempt); }
  void Heartbeat() {
    cluster_.Heartbeat();
    cluster_.Pass(std::chrono::milliseconds(600));
  }

  // `rank` cannot restore the newest commit; the others stop on request.
  void FailToRestore(int32_t rank) {
    const uint64_t epoch = job().record.group_epoch();
    const auto placements = job().last_group.ranks();
    v1::WorkerMessage message;
    v1::RankFailed& failed = *message.mutable_rank_failed();
    failed.set_job("a");
    failed.set_group_epoch(epoch);
    failed.set_rank(rank);
    failed.set_code(static_cast<int>(StatusCode::kDataLoss));
    failed.set_message("rank-00000.safetensors is missing");
    failed.set_bad_checkpoint_path(NewestCommit(job())->path());
    cluster_.SendFrom(placements[rank].worker(), message);
    for (const v1::RankPlacement& placement : placements) {
      v1::WorkerMessage stopped;
      stopped.mutable_rank_stopped()->set_job("a");
      stopped.mutable_rank_stopped()->set_group_epoch(epoch);
      stopped.mutable_rank_stopped()->set_rank(placement.rank());
      cluster_.SendFrom(placement.worker(), stopped);
    }
    Heartbeat();
  }
  void Answer(const std::string& worker, int64_t attempt, bool ok, bool damaged) {
    v1::WorkerMessage message;
    v1::CheckpointVerified& verified = *message.mutable_checkpoint_verified();
    verified.set_job("a");
    verified.set_attempt(attempt);
    verified.set_path(commit(attempt).path());
    verified.set_ok(ok);
    verified.set_damaged(damaged);
    if (!ok) verified.set_reason("a reason");
    cluster_.SendFrom(worker, message);
  }
  // Returns the worker that was asked to read back attempt `attempt` since the last call; empty if
  // none.
  std::string Reader(int64_t attempt) {
    std::string reader;
    for (const char* name : {"worker-0", "worker-1", "worker-2"}) {
      if (!cluster_.state().fleet.workers.contains(name)) continue;
      for (const auto& message : cluster_.worker(name).inbox) {
        if (message.has_verify_checkpoint() && message.verify_checkpoint().attempt() == attempt)
          reader = name;
      }
      cluster_.worker(name).inbox.clear();
    }
    return reader;
  }

  TestCluster cluster_;
};

TEST_F(Doubts, OneHostsWordQuarantinesNothingAndTheJobWaitsForAnotherHostsReading) {
  RunAndRecover(2, 2);
  ASSERT_EQ(job().record.state(), v1::JOB_STATE_STARTING);
  (void)Reader(2);
  FailToRestore(1);
  EXPECT_EQ(commit(2).state(), v1::CHECKPOINT_STATE_COMMITTED);
  EXPECT_EQ(commit(2).doubted_by(), "worker-1");
  EXPECT_EQ(job().record.state(), v1::JOB_STATE_RECOVERING);
  EXPECT_FALSE(job().group) << "it is not restored from what may be damaged";
  EXPECT_THAT(job().waiting_for, HasSubstr("worker-0 reads back"));
  EXPECT_EQ(Reader(2), "worker-0") << "worker-1 had reported it";
  Answer("worker-0", 2, true, false);
  EXPECT_EQ(commit(2).state(), v1::CHECKPOINT_STATE_COMMITTED);
  EXPECT_EQ(commit(2).doubted_by(), "");
  EXPECT_THAT(cluster_.Events("a"), Contains("CHECKPOINT_DOUBT_REFUTED"));
  EXPECT_THAT(cluster_.Events("a"), Not(Contains("CHECKPOINT_QUARANTINED")));
  ASSERT_EQ(job().record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(cluster_.Last("worker-0", Kind::kStartRanks)->start_ranks().restore_path(),
            commit(2).path());
}

TEST_F(Doubts, AHostThatReadsWronglyIsToBlameAndNotChosenWhileAnotherIsFree) {
  RunAndRecover(1, 3);
  (void)Reader(2);
  const std::string doubter = job().last_group.ranks(0).worker();
  FailToRestore(0);
  const std::string reader = Reader(2);
  ASSERT_NE(reader, doubter);
  EXPECT_FALSE(cluster_.state().fleet.blame.contains(doubter)) << "it may be right";
  Answer(reader, 2, true, false);
  ASSERT_TRUE(cluster_.state().fleet.blame.contains(doubter));
  const HostFault& fault = cluster_.state().fleet.blame.at(doubter).faults.back();
  EXPECT_THAT(fault.text, HasSubstr(reader + " found it intact"));
  EXPECT_EQ(fault.folder, "/ck");
  ASSERT_EQ(job().record.state(), v1::JOB_STATE_STARTING);
  EXPECT_NE(job().last_group.ranks(0).worker(), doubter);
}

TEST_F(Doubts, TheWordOfTwoHostsQuarantines) {
  RunAndRecover(2, 2);
  (void)Reader(2);
  FailToRestore(1);
  Answer("worker-0", 2, false, true);
  EXPECT_EQ(commit(2).state(), v1::CHECKPOINT_STATE_QUARANTINED);
  EXPECT_THAT(commit(2).reason(), HasSubstr("worker-1 and worker-0 found it damaged"));
  ASSERT_EQ(job().record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(cluster_.Last("worker-0", Kind::kStartRanks)->start_ranks().restore_path(),
            commit(1).path());
}

TEST_F(Doubts, OnOneHostASecondReadingDecides) {
  RunAndRecover(1, 1);
  (void)Reader(2);
  FailToRestore(0);
  EXPECT_EQ(commit(2).state(), v1::CHECKPOINT_STATE_COMMITTED);
  EXPECT_EQ(Reader(2), "worker-0");
  Answer("worker-0", 2, false, true);
  EXPECT_EQ(commit(2).state(), v1::CHECKPOINT_STATE_QUARANTINED);
  EXPECT_THAT(commit(2).reason(), HasSubstr("worker-0 read it twice"));
}

TEST_F(Doubts, AHostThatCannotReadItReportsNothingAndTheNextOneIsAsked) {
  RunAndRecover(2, 3);
  (void)Reader(2);
  const std::string doubter = job().last_group.ranks(1).worker();
  const std::string other = job().last_group.ranks(0).worker();
  FailToRestore(1);
  const std::string first = Reader(2);
  EXPECT_EQ(first, other) << "one of the job's";
  Answer(first, 2, false, false);
  const std::string second = Reader(2);
  EXPECT_NE(second, doubter);
  EXPECT_NE(second, first);
  cluster_.Disconnect(second);
  for (int i = 0; i < 8; ++i) Heartbeat();
  EXPECT_EQ(Reader(2), doubter) << "its own second reading comes last";
  EXPECT_EQ(commit(2).state(), v1::CHECKPOINT_STATE_COMMITTED);
  Answer(doubter, 2, false, true);
  EXPECT_EQ(commit(2).state(), v1::CHECKPOINT_STATE_QUARANTINED);
}

TEST_F(Doubts, AWorkerThatWasNotAskedCannotQuarantineOrClear) {
  RunAndRecover(1, 3);
  (void)Reader(2);
  Answer("worker-2", 2, false, true);
  Answer("worker-2", 1, false, true);
  EXPECT_EQ(commit(1).state(), v1::CHECKPOINT_STATE_COMMITTED);
  EXPECT_EQ(commit(2).doubted_by(), "");
  const std::string doubter = job().last_group.ranks(0).worker();
  FailToRestore(0);
  const std::string reader = Reader(2);
  ASSERT_NE(reader, doubter);
  ASSERT_NE(reader, "worker-2");
  Answer("worker-2", 2, false, true);
  EXPECT_EQ(commit(2).state(), v1::CHECKPOINT_STATE_COMMITTED);
  Answer("worker-2", 2, true, false);
  EXPECT_EQ(commit(2).doubted_by(), doubter);
}

TEST_F(Doubts, ARestartedCoordinatorHasItReadAgain) {
  RunAndRecover(2, 2);
  (void)Reader(2);
  FailToRestore(1);
  EXPECT_EQ(Reader(2), "worker-0");
  cluster_.Restart();
  cluster_.Reconnect("worker-0");
  cluster_.Reconnect("worker-1");
  EXPECT_FALSE(job().group);
  for (int i = 0; i < 6; ++i) Heartbeat();
  EXPECT_EQ(Reader(2), "worker-0");
  Answer("worker-0", 2, true, false);
  EXPECT_EQ(job().record.state(), v1::JOB_STATE_STARTING);
}

TEST_F(Doubts, ACommitThatRetentionLetsGoIsReadNoMore) {
  RunJob(cluster_, 2, 2);
  cluster_.state().jobs.at("a").spec.mutable_checkpoint()->set_keep_latest_k(2);
  for (const int64_t step : {10, 20, 30, 40, 50}) {
    ReportUpTo(cluster_, step - 9, step);
    cluster_.Commit("a", AttemptOf(cluster_, step), step);
    if (step == 30) {
      cluster_.Verified("a", 2, false, true);
      ASSERT_EQ(Reader(2), "worker-1") << "worker-0 had reported it";
    }
    if (step > 30) cluster_.VerifyAll("a");
  }
  ASSERT_EQ(commit(2).state(), v1::CHECKPOINT_STATE_DELETING);
  cluster_.Deleted("a", 2);
  ASSERT_FALSE(job().checkpoints.contains(2));
  cluster_.Disconnect("worker-1");
  for (int i = 0; i < 8; ++i) Heartbeat();
  EXPECT_EQ(Reader(2), "") << "it is gone";
}

TEST_F(Doubts, AJobOfWhichEveryCommitIsQuarantinedFailsAndGoesOnOnceOneIsLifted) {
  RunAndRecover(1, 1);
  for (const int64_t attempt : {2, 1}) {
    ASSERT_TRUE(job().group) << attempt;
    FailToRestore(0);
    Answer("worker-0", attempt, false, true);
    for (int i = 0; i < 4; ++i) Heartbeat();
  }
  ASSERT_EQ(job().record.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(job().record.failure().cause(), "NO_RESTORABLE_CHECKPOINT");
  const auto lift = [&](const std::string& digest) {
    LiftQuarantineCall call{cluster_.next_call++, {}};
    call.request.set_path(commit(2).path());
    call.request.set_digest(digest);
    return cluster_.Do(call).replies.at(0).status;
  };
  EXPECT_EQ(lift("sha256:other").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(commit(2).state(), v1::CHECKPOINT_STATE_QUARANTINED);
  EXPECT_TRUE(lift(commit(2).digest()).ok());
  EXPECT_TRUE(lift(commit(2).digest()).ok()) << "a second time changes nothing";
  EXPECT_EQ(commit(2).state(), v1::CHECKPOINT_STATE_COMMITTED);
  EXPECT_THAT(cluster_.Events("a"), Contains("CHECKPOINT_LIFTED"));
  ResumeJobCall resume{cluster_.next_call++, {}};
  resume.request.set_name("a");
  cluster_.Do(resume);
  ASSERT_EQ(job().record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(cluster_.Last("worker-0", Kind::kStartRanks)->start_ranks().restore_path(),
            commit(2).path());
}

TEST_F(Doubts, ADoubtEndsWhereTheCallerOfLiftHasReadTheCommitWhole) {
  RunAndRecover(2, 2);
  (void)Reader(2);
  FailToRestore(1);
  ASSERT_EQ(commit(2).doubted_by(), "worker-1");
  const auto lift = [&](const std::string& digest) {
    LiftQuarantineCall call{cluster_.next_call++, {}};
    call.request.set_path(commit(2).path());
    call.request.set_digest(digest);
    return cluster_.Do(call).replies.at(0);
  };
  EXPECT_EQ(lift("sha256:other").status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(commit(2).doubted_by(), "worker-1");
  const Reply lifted = lift(commit(2).digest());
  ASSERT_TRUE(lifted.status.ok());
  EXPECT_EQ(std::get<v1::CheckpointRecord>(lifted.value).doubted_by(), "");
  EXPECT_TRUE(commit(2).verified());
  EXPECT_THAT(cluster_.Events("a"), Contains("CHECKPOINT_DOUBT_REFUTED"));
  ASSERT_EQ(job().record.state(), v1::JOB_STATE_STARTING) << "it need not wait for a reading";
  EXPECT_EQ(cluster_.Last("worker-0", Kind::kStartRanks)->start_ranks().restore_path(),
            commit(2).path());
  Answer("worker-0", 2, false, true);  // arrives too late
  EXPECT_EQ(commit(2).state(), v1::CHECKPOINT_STATE_COMMITTED);
}

TEST_F(Doubts, AnIdentityOfTheFolderTravelsWithEveryOrder) {
  cluster_.Connect("worker-0");
  v1::JobSpec spec = TestSpec("a", 1, 100);
  spec.mutable_checkpoint()->set_interval(10);
  cluster_.Submit(spec);
  EXPECT_EQ(cluster_.Last("worker-0", Kind::kStartRanks)->start_ranks().folder_id(), "");
  v1::WorkerMessage message;
  message.mutable_rank_address()->set_job("a");
  message.mutable_rank_address()->set_group_epoch(1);
  message.mutable_rank_address()->set_address("address-0");
  message.mutable_rank_address()->set_folder_id("f1");
  message.mutable_rank_address()->set_folder_token("t1");
  cluster_.SendFrom("worker-0", message);
  EXPECT_EQ(job().record.folder_id(), "") << "its hosts may see another folder there";
  EXPECT_EQ(
      cluster_.Last("worker-0", Kind::kAddressBook)->address_book().addresses(0).folder_token(),
      "t1");
  cluster_.StartRanks("a");
  EXPECT_EQ(job().record.folder_id(), "f1");
  EXPECT_EQ(cluster_.Last("worker-0", Kind::kTicket)->ticket().intents(0).folder_id(), "f1");
  ReportUpTo(cluster_, 1, 10);
  cluster_.Commit("a", 1, 10);
  EXPECT_EQ(commit(1).folder_id(), "f1");
  Crash();
  const v1::StartRanks start = cluster_.Last("worker-0", Kind::kStartRanks)->start_ranks();
  EXPECT_EQ(start.folder_id(), "f1");
  EXPECT_EQ(start.restore_folder_id(), "f1");
}

}  // namespace
}  // namespace troupe
