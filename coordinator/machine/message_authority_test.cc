#include "coordinator/machine/message_authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Verdict = Authority::Verdict;

// Job `a` runs on worker-0 and worker-1 and has commits of steps 10, 20 and 30; rank 0's worker was
// asked to read back the newest. A third worker has no part in it.
class MessageAuthority : public testing::Test {
 protected:
  MessageAuthority() {
    cluster_.Connect("worker-0");
    cluster_.Connect("worker-1");
    v1::JobSpec spec = TestSpec("a", 2, 100);
    spec.mutable_checkpoint()->set_interval(10);
    spec.mutable_checkpoint()->set_keep_latest_k(2);
    cluster_.Submit(spec);
    cluster_.StartRanks("a");
    for (const int64_t step : {10, 20, 30}) {
      ReportUpTo(cluster_, step - 9, step);
      const int64_t attempt = AttemptOf(cluster_, step);
      cluster_.Commit("a", attempt, step);
    }
    cluster_.Connect("stranger");
  }

  const Job& job() const { return cluster_.job("a"); }

  // One message of each kind about job `a` that would have an effect if the right worker sent it.
  std::vector<v1::WorkerMessage> MessagesAboutTheJob() const {
    std::vector<v1::WorkerMessage> messages;
    const auto of_rank = [&](auto* body) {
      body->set_job("a");
      body->set_group_epoch(job().record.group_epoch());
      body->set_rank(0);
      return body;
    };
    of_rank(messages.emplace_back().mutable_rank_device())->set_id(7);
    of_rank(messages.emplace_back().mutable_rank_address())->set_address("mine");
    of_rank(messages.emplace_back().mutable_rank_ready())->set_step(7);
    of_rank(messages.emplace_back().mutable_step_report())->set_step(31);
    of_rank(messages.emplace_back().mutable_rank_cores())->mutable_cores()->add_cores(0);
    of_rank(messages.emplace_back().mutable_rank_flight())->set_activity("mine");
    const int64_t attempt = job().attempts.begin()->first;
    auto* const vote = of_rank(messages.emplace_back().mutable_shard_done());
    vote->set_attempt(attempt);
    vote->set_incarnation(1);
    vote->set_step(40);
    of_rank(messages.emplace_back().mutable_shard_failed())->set_attempt(attempt);
    auto* const manifest = messages.emplace_back().mutable_manifest_done();
    manifest->set_job("a");
    manifest->set_group_epoch(job().record.group_epoch());
    manifest->set_attempt(attempt);
    of_rank(messages.emplace_back().mutable_rank_failed())->set_message("let me in");
    of_rank(messages.emplace_back().mutable_image_saved())->set_path("/mine");
    of_rank(messages.emplace_back().mutable_rank_stopped())->set_crashed(true);
    for (const auto& [number, record] : job().checkpoints) {
      auto* const verified = messages.emplace_back().mutable_checkpoint_verified();
      verified->set_job("a");
      verified->set_attempt(number);
      verified->set_path(record.path());
      verified->set_damaged(true);
      auto* const deleted = messages.emplace_back().mutable_checkpoint_deleted();
      deleted->set_job("a");
      deleted->set_attempt(number);
      deleted->set_path(record.path());
      deleted->set_none_writes(true);
    }
    auto* const lines = messages.emplace_back().mutable_log_lines();
    lines->set_request(1);
    lines->add_lines("forged");
    lines->set_last(true);
    auto* const trace = of_rank(messages.emplace_back().mutable_rank_trace());
    trace->set_request(1);
    auto* const burnt_in = messages.emplace_back().mutable_burn_in_done();
    burnt_in->set_request(1);
    burnt_in->set_sound(true);
    return messages;
  }

  Authority Judge(const v1::WorkerMessage& message, const std::string& sender) {
    const CoordinatorState& state = cluster_.state();
    return JudgeMessage(
        message, state.fleet.workers.at(sender),
        {state.jobs, state.fleet, state.log_reads, state.traces, state.options.bugs});
  }

  TestCluster cluster_;
};

TEST_F(MessageAuthority, AStrangersWordAboutAJobHasNoEffect) {
  ReadLogsCall logs{701, {}};
  logs.request.set_name("a");
  cluster_.Do(logs);
  TraceJobCall trace{702, {}};
  trace.request.set_name("a");
  trace.request.set_first_step(1);
  trace.request.set_last_step(2);
  cluster_.Do(trace);
  for (const v1::WorkerMessage& message : MessagesAboutTheJob()) {
    const Effects effects = cluster_.SendFrom("stranger", message);
    const std::string text = message.ShortDebugString();
    EXPECT_TRUE(effects.writes.empty()) << text;
    EXPECT_THAT(effects.messages, IsEmpty()) << text;
    EXPECT_THAT(effects.replies, IsEmpty()) << text;
    EXPECT_THAT(effects.logs, IsEmpty()) << text;
    EXPECT_THAT(effects.updates, IsEmpty()) << text;
  }
  EXPECT_EQ(job().record.state(), v1::JOB_STATE_RUNNING);
  for (const auto& [number, record] : job().checkpoints) {
    EXPECT_EQ(record.state(), v1::CHECKPOINT_STATE_COMMITTED) << record.path();
  }
  EXPECT_THAT(cluster_.Events("a"), Not(Contains("CHECKPOINT_QUARANTINED")));
}

TEST_F(MessageAuthority, WithoutItAStrangerConfirmsADeletion) {
  cluster_.VerifyAll("a");
  const int64_t oldest = job().checkpoints.begin()->first;
  ASSERT_EQ(job().checkpoints.at(oldest).state(), v1::CHECKPOINT_STATE_DELETING);
  cluster_.state().options.bugs.accept_unasked_answers = true;
  for (const v1::WorkerMessage& message : MessagesAboutTheJob()) {
    if (message.has_checkpoint_deleted()) cluster_.SendFrom("stranger", message);
  }
  EXPECT_FALSE(job().checkpoints.contains(oldest));
}

// A job that moves has its checkpoints deleted by the worker of its new rank 0.
TEST_F(MessageAuthority, AWorkerThatWasAskedBeforeAnotherConfirmsADeletion) {
  cluster_.VerifyAll("a");
  const v1::CheckpointRecord oldest = job().checkpoints.begin()->second;
  ASSERT_EQ(oldest.state(), v1::CHECKPOINT_STATE_DELETING);
  v1::WorkerMessage drains;
  drains.mutable_draining()->set_seconds_left(110);
  cluster_.SendFrom("worker-0", drains);
  const auto* const asked = cluster_.Last("worker-0", v1::CoordinatorMessage::kCheckpointRequest);
  ASSERT_NE(asked, nullptr);
  const uint64_t epoch = job().record.group_epoch();
  const int64_t attempt = asked->checkpoint_request().intent().attempt();
  cluster_.Report("a", 31);
  cluster_.Commit("a", attempt, 31);
  cluster_.StopRanks("a", epoch, {"worker-0", "worker-1"});
  cluster_.StartRanks("a", 31);
  const std::string& next = job().last_group.ranks(0).worker();
  ASSERT_NE(next, "worker-0");
  ReportUpTo(cluster_, 32, 40);
  cluster_.Commit("a", AttemptOf(cluster_, 40), 40);
  ASSERT_NE(cluster_.Last(next, v1::CoordinatorMessage::kDeleteCheckpoint), nullptr);
  v1::WorkerMessage answer;
  v1::CheckpointDeleted* const deleted = answer.mutable_checkpoint_deleted();
  deleted->set_job("a");
  deleted->set_attempt(oldest.attempt());
  deleted->set_path(oldest.path());
  deleted->set_none_writes(true);
  EXPECT_EQ(Judge(answer, "worker-0").verdict, Authority::Verdict::kAccepted);
  EXPECT_EQ(Judge(answer, next).verdict, Authority::Verdict::kAccepted);
  const std::string other = next == "worker-1" ? "stranger" : "worker-1";
  EXPECT_EQ(Judge(answer, other).verdict, Authority::Verdict::kDenied);
}

TEST_F(MessageAuthority, WhatAStrangerSendsIsCountedAndNotedEverMoreRarely) {
  v1::WorkerMessage message;
  message.mutable_checkpoint_verified()->set_job("a");
  message.mutable_checkpoint_verified()->set_attempt(job().checkpoints.begin()->first);
  message.mutable_checkpoint_verified()->set_damaged(true);
  std::vector<std::string> notes;
  for (int i = 0; i < 100; ++i) {
    const Effects effects = cluster_.SendFrom("stranger", message);
    ASSERT_THAT(effects.measurements, SizeIs(1));
    EXPECT_EQ(std::get<MessageDenied>(effects.measurements[0]).kind, "checkpoint_verified");
    notes.insert(notes.end(), effects.notes.begin(), effects.notes.end());
  }
  EXPECT_THAT(notes, SizeIs(7));  // the 1st, 2nd, 4th … 64th
  EXPECT_THAT(notes[0], HasSubstr("checkpoint_verified of worker \"stranger\" is denied"));
  EXPECT_THAT(notes[0], HasSubstr("it was not asked to verify attempt"));
}

TEST_F(MessageAuthority, EachKindIsJudged) {
  // Messages that no worker may send about a job are stale or denied; a kind that JudgeMessage
  // forgot would be accepted or stale for its rightful sender too.
  const auto* const kinds = v1::WorkerMessage::descriptor()->FindOneofByName("message");
  std::set<std::string> judged = {"hello", "heartbeat", "goodbye", "draining", "device_condemned"};
  for (const v1::WorkerMessage& message : MessagesAboutTheJob()) {
    judged.insert(KindOf(message));
    EXPECT_NE(Judge(message, "stranger").verdict, Verdict::kAccepted) << message.ShortDebugString();
  }
  for (int i = 0; i < kinds->field_count(); ++i) {
    EXPECT_TRUE(judged.contains(kinds->field(i)->name())) << kinds->field(i)->name();
  }
}

TEST_F(MessageAuthority, AMemberSpeaksOfItsOwnRanksInItsOwnGroupEpoch) {
  v1::WorkerMessage message;
  v1::StepReport& report = *message.mutable_step_report();
  report.set_job("a");
  report.set_group_epoch(job().record.group_epoch());
  EXPECT_EQ(Judge(message, "worker-0").verdict, Verdict::kAccepted);
  EXPECT_EQ(Judge(message, "worker-1"),
            (Authority{Verdict::kDenied, "rank 0 of job a runs on worker-0"}));
  report.set_rank(2);
  EXPECT_EQ(Judge(message, "worker-0"),
            (Authority{Verdict::kDenied, "it names rank 2 of job a, which has 2 ranks"}));
  report.set_rank(0);
  report.set_group_epoch(0);
  EXPECT_EQ(Judge(message, "worker-0").verdict, Verdict::kStale);
  report.set_group_epoch(99);
  EXPECT_EQ(Judge(message, "worker-0"),
            (Authority{Verdict::kDenied, "it names group epoch 99 of job a, whose newest is 1"}));
  report.set_group_epoch(1);
  report.set_job("b");
  EXPECT_EQ(Judge(message, "worker-0").verdict, Verdict::kStale);
}

TEST_F(MessageAuthority, ADeviceHasAtMostTheCoordinatesOfAChip) {
  v1::WorkerMessage message;
  v1::RankDevice& device = *message.mutable_rank_device();
  device.set_job("a");
  device.set_group_epoch(job().record.group_epoch());
  for (const int coordinate : {0, 1, 2}) device.add_coordinates(coordinate);
  EXPECT_EQ(Judge(message, "worker-0").verdict, Verdict::kAccepted);
  device.add_coordinates(3);
  EXPECT_EQ(
      Judge(message, "worker-0"),
      (Authority{Verdict::kDenied,
                 "the device of rank 0 of job a has 4 coordinates, and a chip has at most 3"}));
}

TEST_F(MessageAuthority, AnotherLifeOfTheWorkerIsNoMember) {
  v1::WorkerMessage message;
  message.mutable_step_report()->set_job("a");
  message.mutable_step_report()->set_group_epoch(1);
  v1::WorkerMessage stopped;
  stopped.mutable_rank_stopped()->set_job("a");
  stopped.mutable_rank_stopped()->set_group_epoch(1);
  ++cluster_.state().fleet.workers.at("worker-0").incarnation;
  EXPECT_EQ(Judge(message, "worker-0").verdict, Verdict::kDenied);
  EXPECT_EQ(Judge(stopped, "worker-0").verdict, Verdict::kDenied);
}

TEST_F(MessageAuthority, AnAnswerCountsFromTheOneThatWasAskedAndForWhatItWasAsked) {
  const int64_t asked = job().verifications.begin()->first;
  v1::WorkerMessage message;
  v1::CheckpointVerified& verified = *message.mutable_checkpoint_verified();
  verified.set_job("a");
  verified.set_attempt(asked);
  verified.set_path("/elsewhere");
  verified.set_ok(true);
  EXPECT_THAT(Judge(message, "worker-0").reason, HasSubstr("not at /elsewhere"));
  verified.set_path(job().checkpoints.at(asked).path());
  EXPECT_EQ(Judge(message, "worker-0").verdict, Verdict::kAccepted);
  EXPECT_EQ(Judge(message, "worker-1").verdict, Verdict::kDenied) << "a member, but not asked";
  // The oldest commit is verified only once there is something to delete that depends on it.
  verified.set_attempt(job().checkpoints.begin()->first);
  verified.set_path(job().checkpoints.begin()->second.path());
  EXPECT_EQ(Judge(message, "worker-0").verdict, Verdict::kDenied);
  // A broken stream does not change who owes the answer.
  cluster_.Disconnect("worker-0");
  cluster_.Reconnect("worker-0");
  verified.set_attempt(asked);
  verified.set_path(job().checkpoints.at(asked).path());
  EXPECT_EQ(Judge(message, "worker-0").verdict, Verdict::kAccepted);
}

TEST_F(MessageAuthority, ADeletionIsConfirmedByTheOneThatWasAskedToDelete) {
  cluster_.VerifyAll("a");
  const int64_t oldest = job().checkpoints.begin()->first;
  ASSERT_EQ(job().checkpoints.at(oldest).state(), v1::CHECKPOINT_STATE_DELETING);
  v1::WorkerMessage message;
  message.mutable_checkpoint_deleted()->set_job("a");
  message.mutable_checkpoint_deleted()->set_attempt(oldest);
  message.mutable_checkpoint_deleted()->set_path(job().checkpoints.at(oldest).path());
  message.mutable_checkpoint_deleted()->set_none_writes(true);
  cluster_.SendFrom("worker-1", message);
  cluster_.SendFrom("stranger", message);
  EXPECT_TRUE(job().checkpoints.contains(oldest));
  cluster_.SendFrom("worker-0", message);
  EXPECT_FALSE(job().checkpoints.contains(oldest));
  EXPECT_EQ(Judge(message, "worker-0").verdict, Verdict::kStale) << "resent";
}

TEST_F(MessageAuthority, LinesComeFromEachWorkerThatWasAskedUntilItsLast) {
  ReadLogsCall logs{701, {}};
  logs.request.set_name("a");
  cluster_.Do(logs);
  v1::WorkerMessage message;
  message.mutable_log_lines()->set_request(
      cluster_.Last("worker-0", v1::CoordinatorMessage::kReadLogs)->read_logs().request());
  message.mutable_log_lines()->add_lines("line");
  message.mutable_log_lines()->set_last(true);
  EXPECT_FALSE(cluster_.SendFrom("worker-0", message).logs.at(0).last);
  EXPECT_THAT(cluster_.SendFrom("worker-0", message).logs, IsEmpty()) << "its last were sent";
  EXPECT_TRUE(cluster_.SendFrom("worker-1", message).logs.at(0).last);
  EXPECT_EQ(Judge(message, "worker-1").verdict, Verdict::kStale);
  message.mutable_log_lines()->set_request(77);
  EXPECT_EQ(Judge(message, "worker-1").verdict, Verdict::kDenied);
}

TEST_F(MessageAuthority, AStreamStaysItsFirstWorkersAndAConnectedLifeOneProcesss) {
  const SessionId session = cluster_.worker("stranger").session;
  v1::WorkerMessage hello;
  *hello.mutable_hello() = cluster_.state().fleet.workers.at("worker-0").hello;
  Effects effects = cluster_.Do(WorkerReported{session, hello});
  ASSERT_THAT(effects.messages, SizeIs(1));
  EXPECT_EQ(effects.messages[0].message.refused().code(),
            static_cast<int>(StatusCode::kInvalidArgument));
  // Another process states everything that the API shows of the life that is connected.
  hello.mutable_hello()->set_life_key("guess");
  effects = cluster_.Do(WorkerReported{9998, hello});
  ASSERT_THAT(effects.messages, SizeIs(1));
  EXPECT_EQ(effects.messages[0].message.refused().code(),
            static_cast<int>(StatusCode::kAlreadyExists));
  EXPECT_EQ(cluster_.state().fleet.workers.at("worker-0").session,
            cluster_.worker("worker-0").session);
  EXPECT_EQ(job().record.group_epoch(), 1u);
  EXPECT_EQ(job().record.state(), v1::JOB_STATE_RUNNING);
  // Another process claims to be it.
  hello.mutable_hello()->set_pid(4711);
  effects = cluster_.Do(WorkerReported{9999, hello});
  ASSERT_THAT(effects.messages, SizeIs(1));
  EXPECT_EQ(effects.messages[0].message.refused().code(),
            static_cast<int>(StatusCode::kAlreadyExists));
  EXPECT_EQ(cluster_.state().fleet.workers.at("worker-0").session,
            cluster_.worker("worker-0").session);
}

TEST_F(MessageAuthority, AfterARestartOfTheCoordinatorALifeWithLeasesNeedsItsKey) {
  const auto forged = [this](const std::string& worker) {
    v1::WorkerMessage hello;
    *hello.mutable_hello() = cluster_.state().fleet.workers.at(worker).hello;
    hello.mutable_hello()->set_life_key("guess");
    return hello;
  };
  const v1::WorkerMessage of_holder = forged("worker-0");
  const v1::WorkerMessage of_idle = forged("stranger");
  cluster_.Restart();
  const Effects effects = cluster_.Do(WorkerReported{9998, of_holder});
  ASSERT_THAT(effects.messages, SizeIs(1));
  EXPECT_EQ(effects.messages[0].message.refused().code(),
            static_cast<int>(StatusCode::kAlreadyExists));
  EXPECT_TRUE(cluster_.state().fleet.leases.contains({"worker-0", 0}));
  cluster_.Reconnect("worker-0");
  cluster_.Reconnect("worker-1");
  EXPECT_EQ(job().record.group_epoch(), 1u);
  EXPECT_EQ(job().record.restarts(), 0);
  EXPECT_EQ(job().record.state(), v1::JOB_STATE_RUNNING);
  // A worker that holds no lease is not known any more; its name is free.
  cluster_.Do(WorkerReported{9999, of_idle});
  EXPECT_EQ(cluster_.state().fleet.workers.at("stranger").session, 9999u);
}

TEST_F(MessageAuthority, NoCommitThatDoesNotExistCountsOrEndsAJob) {
  const size_t commits = job().checkpoints.size();
  const auto& [open, attempt] = *job().attempts.begin();
  // Rank 0 states commits of an attempt that nobody requested, and of one to which rank 1 has added
  // nothing. Both would be the job's newest commit.
  cluster_.WriteManifest("a", 999);
  cluster_.Vote("a", open, attempt.record.step(), 0);
  cluster_.WriteManifest("a", open);
  EXPECT_EQ(job().checkpoints.size(), commits);
  EXPECT_EQ(job().record.state(), v1::JOB_STATE_RUNNING);
}

}  // namespace
}  // namespace troupe
