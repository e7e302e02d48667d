// Tests of a job's life: submit, place, start, run, end, cancel, resume.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/job/job_creation.h"
#include "coordinator/machine/machine.h"
#include "coordinator/machine/views.h"
#include "coordinator/test_cluster.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Kind = v1::CoordinatorMessage;

std::string NameOf(int worker) { return fmt::format("worker-{}", worker); }

void ConnectWorkers(TestCluster& cluster, int count, int devices = 1) {
  for (int worker = 0; worker < count; ++worker) cluster.Connect(NameOf(worker), devices);
}

Effects Cancel(TestCluster& cluster, const std::string& job, bool checkpoint) {
  CancelJobCall call{cluster.next_call++, {}};
  call.request.set_name(job);
  call.request.set_checkpoint(checkpoint);
  return cluster.Do(call);
}

Effects Resume(TestCluster& cluster, const std::string& job, const v1::JobSpec& overrides = {}) {
  ResumeJobCall call{cluster.next_call++, {}};
  call.request.set_name(job);
  *call.request.mutable_overrides() = overrides;
  return cluster.Do(call);
}

TEST(CreateJob, ARequestIdAsksForTheSameAgainAndForNothingElse) {
  TestCluster cluster;
  const v1::JobSpec spec = TestSpec("a", 1, 3);
  ASSERT_TRUE(cluster.Submit(spec, "r").status.ok());
  EXPECT_TRUE(cluster.Submit(spec, "r").status.ok());
  v1::JobSpec other = spec;
  other.mutable_training()->set_steps(4);
  for (int life = 0; life < 2; ++life) {
    const Reply reply = cluster.Submit(other, "r");
    EXPECT_EQ(reply.status.code(), StatusCode::kAlreadyExists);
    EXPECT_THAT(std::string(Message(reply.status)), ::testing::HasSubstr("request_id is r"));
    EXPECT_TRUE(cluster.Submit(spec, "r").status.ok());
    cluster.Restart();
  }
  EXPECT_EQ(cluster.state().jobs.size(), 1u);
}

TEST(CreateJob, EachNamespaceHasRequestIdsOfItsOwn) {
  TestCluster cluster;
  for (const char* job : {"a", "lab.a", "shop.a"}) {
    for (int life = 0; life < 2; ++life) {
      EXPECT_TRUE(cluster.Submit(TestSpec(job, 1, 3), "r").status.ok()) << job;
      cluster.Restart();
    }
  }
  EXPECT_EQ(cluster.state().jobs.size(), 3u);
  // One with a slash is not that of another namespace.
  EXPECT_TRUE(cluster.Submit(TestSpec("b", 1, 3), "lab/r").status.ok());
}

TEST(Machine, AJobRunsFromSubmitToItsFinalCommit) {
  TestCluster cluster;
  ConnectWorkers(cluster, 2);
  const Reply created = cluster.Submit(TestSpec("a", 2, 3));
  ASSERT_TRUE(created.status.ok());
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  const v1::CoordinatorMessage* const start = cluster.Last("worker-0", Kind::kStartRanks);
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(start->start_ranks().group_epoch(), 1u);
  EXPECT_THAT(start->start_ranks().ranks(), ElementsAre(0));
  cluster.StartRanks("a");
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  const v1::CoordinatorMessage* const ticket = cluster.Last("worker-1", Kind::kTicket);
  ASSERT_NE(ticket, nullptr);
  EXPECT_EQ(ticket->ticket().end_step(), 3);
  EXPECT_GE(ticket->ticket().lifetime_seconds(), 60);
  ASSERT_EQ(ticket->ticket().intents_size(), 1);
  EXPECT_TRUE(ticket->ticket().intents(0).then_stop());
  EXPECT_EQ(ticket->ticket().intents(0).path(), "/ck/a/step-00000003-epoch-1-attempt-1-at-0");
  for (int64_t step = 1; step <= 3; ++step) cluster.Report("a", step);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  cluster.Commit("a", 1, 3);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_TRUE(
      cluster.Last("worker-1", Kind::kCheckpointFinalized)->checkpoint_finalized().committed());
  EXPECT_TRUE(cluster.Last("worker-1", Kind::kStopRanks)->stop_ranks().finished());
  EXPECT_THAT(cluster.Events("a"),
              ElementsAre("QUEUED", "STARTED", "CHECKPOINT_COMMITTED", "SUCCEEDED"));
  const auto history = ReadHistory(cluster.store(), "a", 1, 100);
  ASSERT_TRUE(history.ok());
  EXPECT_EQ(history->size(), 3u);
  EXPECT_EQ(cluster.updates.back().update.end(), v1::JOB_STATE_SUCCEEDED);
}

TEST(Machine, WithoutAFolderTheLastReportEndsTheJob) {
  TestCluster cluster;
  ConnectWorkers(cluster, 1);
  v1::JobSpec spec = TestSpec("a", 1, 2);
  spec.mutable_checkpoint()->clear_folder();
  cluster.Submit(spec);
  cluster.StartRanks("a");
  cluster.Report("a", 1);
  cluster.Report("a", 2);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_SUCCEEDED);
}

TEST(Machine, ARepeatedRequestIdReturnsTheFirstJobAlsoAfterARestart) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.Submit(TestSpec("a", 1, 3), "r1").status.ok());
  EXPECT_EQ(std::get<v1::Job>(cluster.Submit(TestSpec("a", 1, 3), "r1").value).name(), "jobs/a");
  cluster.Restart();
  EXPECT_EQ(std::get<v1::Job>(cluster.Submit(TestSpec("a", 1, 3), "r1").value).name(), "jobs/a");
  const Status taken = cluster.Submit(TestSpec("a", 1, 3), "r2").status;
  EXPECT_EQ(taken.code(), StatusCode::kInvalidArgument);
  ASSERT_EQ(ViolationsOf(taken).size(), 1u) << taken;
  EXPECT_EQ(ViolationsOf(taken)[0].field, "name");
  EXPECT_EQ(ViolationsOf(taken)[0].description,
            "is a, which another job already has: give this one another name (--name), or delete "
            "that one once it has ended (`troupe delete a`)");
  EXPECT_EQ(cluster.state().jobs.size(), 1u);
}

TEST(Machine, AJobWithoutAFolderTakesTheCoordinatorsUnlessItStatesNone) {
  TestCluster cluster;
  cluster.state().options.checkpoint_folder = "/data/checkpoints";
  cluster.state().options.checkpoint_folder_id = "f1";
  v1::JobSpec spec = TestSpec("a", 1, 2);
  spec.clear_checkpoint();
  ASSERT_TRUE(cluster.Submit(spec).status.ok());
  EXPECT_EQ(cluster.job("a").spec.checkpoint().folder(), "/data/checkpoints");
  EXPECT_EQ(cluster.job("a").record.folder_id(), "f1") << "no host uses another folder";
  spec.set_name("b");
  spec.mutable_checkpoint()->set_folder("");
  ASSERT_TRUE(cluster.Submit(spec).status.ok());
  EXPECT_FALSE(cluster.job("b").has_folder());
  spec.set_name("c");
  spec.mutable_checkpoint()->set_folder("/own");
  ASSERT_TRUE(cluster.Submit(spec).status.ok());
  EXPECT_EQ(cluster.job("c").spec.checkpoint().folder(), "/own");
  EXPECT_EQ(cluster.job("c").record.folder_id(), "");
}

TEST(Machine, AJobInTheCoordinatorsFolderStartsOnlyWhereTheFolderHasItsIdentity) {
  TestCluster cluster;
  v1::JobSpec spec = TestSpec("a", 1, 2);
  cluster.state().options.checkpoint_folder = spec.checkpoint().folder();
  cluster.state().options.checkpoint_folder_id = "f1";
  ASSERT_TRUE(cluster.Submit(spec).status.ok());
  cluster.Restart();  // the catalog has it
  ConnectWorkers(cluster, 1);
  const auto start = cluster.Last("worker-0", v1::CoordinatorMessage::kStartRanks);
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(start->start_ranks().folder_id(), "f1");
}

TEST(Machine, TheLogsOfAJobThatNeverRanAreEmptyAndOfOneWhoseWorkerIsAwayAreRefused) {
  TestCluster cluster;
  ASSERT_TRUE(cluster.Submit(TestSpec("a", 2, 3)).status.ok());
  ReadLogsCall call{cluster.next_call++, {}};
  call.request.set_name("a");
  Effects effects = cluster.Do(call);
  ASSERT_EQ(effects.logs.size(), 1u);
  EXPECT_TRUE(effects.logs[0].status.ok() && effects.logs[0].last && effects.logs[0].lines.empty());

  ConnectWorkers(cluster, 2);
  cluster.Disconnect("worker-1");
  effects = cluster.Do(call);
  ASSERT_EQ(effects.logs.size(), 1u);
  EXPECT_FALSE(effects.logs[0].last);
  EXPECT_THAT(effects.logs[0].lines, ElementsAre(HasSubstr("worker-1")));
  cluster.Disconnect("worker-0");
  effects = cluster.Do(call);
  EXPECT_EQ(effects.logs[0].status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(effects.logs[0].status)), HasSubstr("worker-0, worker-1"));
}

// The greeting of another process that has the name of worker-0.
WorkerReported TwinOfWorker0(const std::string& host) {
  WorkerReported twin{77, {}};
  v1::Hello* const hello = twin.message.mutable_hello();
  hello->set_protocol_version(2);
  hello->set_name("worker-0");
  hello->set_host(host);
  hello->set_incarnation(99);
  return twin;
}

TEST(Machine, AHostWithAControlCharacterIsRefusedAndNotedInOneLine) {
  TestCluster cluster;
  ConnectWorkers(cluster, 1);
  EXPECT_THAT(cluster.Do(TwinOfWorker0("elsewhere\nforged")).notes,
              ElementsAre(AllOf(HasSubstr("worker-0"), HasSubstr("elsewhere?forged"),
                                HasSubstr("has the control character U+000A"))));
}

TEST(Machine, AReasonToDrainThatIsNotOneLineIsRefusedWithItsValue) {
  TestCluster cluster;
  ConnectWorkers(cluster, 1);
  DrainWorkerCall call{cluster.next_call++, {}};
  call.request.set_name("worker-0");
  call.request.set_reason("a\x1b[2J");
  EXPECT_EQ(Message(cluster.Do(call).replies.at(0).status),
            "reason is \"a\\u001b[2J\", which has the control character U+001B at its byte 2, must "
            "be one line of text");
}

TEST(Machine, WhatIsRefusedIsNotedWithNamesAndValues) {
  TestCluster cluster;
  ConnectWorkers(cluster, 1);
  WorkerReported twin = TwinOfWorker0("elsewhere");
  v1::Hello* const hello = twin.message.mutable_hello();
  EXPECT_THAT(cluster.Do(twin).notes,
              ElementsAre(AllOf(HasSubstr("worker-0"), HasSubstr("elsewhere"), HasSubstr("99"),
                                HasSubstr("still alive as incarnation 1"))));
  hello->set_protocol_version(7);
  EXPECT_THAT(cluster.Do(twin).notes, ElementsAre(HasSubstr("protocol_version is 7")));
  hello->set_protocol_version(2);
  hello->set_incarnation(0);
  EXPECT_THAT(cluster.Do(twin).notes, ElementsAre(HasSubstr("incarnation must be positive")));
  hello->set_incarnation(99);
  v1::Device& device = *hello->add_devices();
  device.mutable_kind()->set_kind("xla");
  device.mutable_chip()->add_position(0);
  EXPECT_THAT(
      cluster.Do(twin).notes,
      ElementsAre(HasSubstr("devices: chip of device 0: position has 1 numbers and host_chips 0")));
}

TEST(Machine, AWorkerThatIsRefusedAgainAndAgainIsNotedEverLessOften) {
  TestCluster cluster;
  ConnectWorkers(cluster, 1);
  WorkerReported twin = TwinOfWorker0("elsewhere");
  std::vector<std::string> notes;
  for (int time = 0; time < 100; ++time) {
    ++twin.session;
    for (const std::string& note : cluster.Do(twin).notes) notes.push_back(note);
  }
  ASSERT_EQ(notes.size(), 7u);
  EXPECT_THAT(notes.back(), HasSubstr("is refused (64 times so far)"));
}

TEST(Machine, AWorkerThatLeavesIsNotConnectedAnyMore) {
  TestCluster cluster;
  ConnectWorkers(cluster, 1);
  v1::WorkerMessage goodbye;
  goodbye.mutable_goodbye();
  goodbye.set_leader_epoch(cluster.state().leader_epoch + 1);
  EXPECT_THAT(cluster.SendFrom("worker-0", goodbye).messages, IsEmpty()) << "of another leader";
  goodbye.set_leader_epoch(cluster.state().leader_epoch);
  const Effects left = cluster.SendFrom("worker-0", goodbye);
  ASSERT_EQ(left.messages.size(), 1u);
  EXPECT_TRUE(left.messages[0].then_close);
  EXPECT_EQ(cluster.state().fleet.workers.at("worker-0").session, 0u);
  // On a stream without a worker it has no effect.
  EXPECT_THAT(cluster.Do(WorkerReported{99, goodbye}).messages, IsEmpty());
}

TEST(Machine, AHelloWithoutDevicesIsNoGoodbye) {
  TestCluster cluster;
  ConnectWorkers(cluster, 1);
  v1::WorkerMessage hello;
  *hello.mutable_hello() = cluster.state().fleet.workers.at("worker-0").hello;
  hello.mutable_hello()->clear_devices();
  const Effects welcomed = cluster.SendFrom("worker-0", hello);
  ASSERT_EQ(welcomed.messages.size(), 1u);
  EXPECT_TRUE(welcomed.messages[0].message.has_welcome());
  EXPECT_FALSE(welcomed.messages[0].then_close);
  EXPECT_EQ(cluster.state().fleet.workers.at("worker-0").session,
            cluster.worker("worker-0").session);
}

TEST(Machine, AJobBehindAnotherReportsForWhichItWaits) {
  TestCluster cluster;
  ConnectWorkers(cluster, 1);
  cluster.Submit(TestSpec("a", 1, 3));
  for (const char* job : {"b", "c", "d"}) cluster.Submit(TestSpec(job, 1, 3));
  EXPECT_EQ(cluster.job("b").waiting_for, "1 rank needs 1 device; 0 are free");
  EXPECT_EQ(cluster.job("c").waiting_for, "waits behind jobs/b");
  EXPECT_EQ(cluster.job("d").waiting_for, "waits behind jobs/b");
  Cancel(cluster, "b", false);
  EXPECT_THAT(cluster.job("c").waiting_for, HasSubstr("0 are free"));
  EXPECT_EQ(cluster.job("d").waiting_for, "waits behind jobs/c");
}

TEST(Machine, TheRecordOfAJobIsInTheWritesThatComeBeforeItsReply) {
  TestCluster cluster;
  const CreateJobCall call = [] {
    CreateJobCall made{1, {}};
    *made.request.mutable_job() = TestSpec("a", 1, 3);
    return made;
  }();
  const Effects effects = Step(cluster.state(), Event{MonotonicTime(), 0, call});
  ASSERT_EQ(effects.replies.size(), 1u);
  std::vector<std::string> keys;
  for (const auto& change : effects.writes.batch().changes()) keys.push_back(change.key);
  EXPECT_THAT(keys, Contains("job/a"));
  EXPECT_THAT(keys, Contains("spec/a"));
  EXPECT_THAT(keys, Contains("plan/a"));
}

TEST(Machine, AGangIsPlacedWholeOrNotAtAll) {
  TestCluster cluster;
  ConnectWorkers(cluster, 3);
  cluster.Submit(TestSpec("a", 4, 3));
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_QUEUED);
  EXPECT_THAT(cluster.state().fleet.leases, IsEmpty());
  EXPECT_THAT(cluster.job("a").waiting_for, HasSubstr("4 ranks need 4 devices; 3 are free"));
  EXPECT_THAT(cluster.Events("a"), Contains("WAITING_FOR_CAPACITY"));
  cluster.Connect("worker-3");
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(cluster.state().fleet.leases.size(), 4u);
}

TEST(Machine, TheQueueGoesByPriorityThenAgeAndKeepsThePlaceOfLargeJobs) {
  TestCluster cluster;
  ConnectWorkers(cluster, 2);
  cluster.Submit(TestSpec("first", 1, 3));
  cluster.Submit(TestSpec("large", 2, 3));
  cluster.Submit(TestSpec("small", 1, 3));
  v1::JobSpec urgent = TestSpec("urgent", 2, 3);
  urgent.set_priority(1);
  cluster.Submit(urgent);
  v1::JobSpec impossible = TestSpec("impossible", 9, 3);
  impossible.set_priority(2);
  cluster.Submit(impossible);
  // One device is free, but the large jobs are before the small one and would fit an empty fleet.
  EXPECT_EQ(cluster.job("small").record.state(), v1::JOB_STATE_QUEUED);
  Cancel(cluster, "first", false);
  EXPECT_EQ(cluster.job("urgent").record.state(), v1::JOB_STATE_QUEUED)
      << "its rank is not confirmed dead";
  cluster.worker("worker-0").held.emplace_back().set_job("first");
  cluster.worker("worker-0").held[0].set_group_epoch(1);
  cluster.worker("worker-0").held[0].add_ranks(0);
  cluster.StopRanks("first", 1, {"worker-0"});
  EXPECT_EQ(cluster.job("urgent").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(cluster.job("large").record.state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(cluster.job("impossible").record.state(), v1::JOB_STATE_QUEUED);
}

TEST(Machine, ThousandsOfJobsMayWaitAndTheFirstIsPlacedWhenAWorkerComes) {
  TestCluster cluster;
  for (int i = 0; i < 2000; ++i) cluster.Submit(TestSpec(fmt::format("job-{:04d}", i), 1, 10));
  cluster.Connect("worker-0");
  EXPECT_EQ(cluster.job("job-0000").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(cluster.state().index.queue().size(), 1999u);
  EXPECT_EQ(cluster.state().index.active().size(), 1u) << "a job that only waits costs no deadline";
}

TEST(Machine, ATicketIsRenewedWhenHalfOfItIsUsed) {
  TestCluster cluster;
  ConnectWorkers(cluster, 1);
  cluster.Submit(TestSpec("a", 1, 100000));
  cluster.StartRanks("a");
  const int64_t first = cluster.Last("worker-0", Kind::kTicket)->ticket().end_step();
  for (int64_t step = 1; step <= first / 2; ++step) {
    cluster.Report("a", step);
    cluster.worker("worker-0").inbox.clear();
  }
  cluster.Report("a", first / 2 + 1);
  const Group& group = *cluster.job("a").group;
  // At 0.5 s per step, tickets cover at least 60 s of steps ahead.
  EXPECT_GE(group.ticket_end - cluster.job("a").record.step(), 120);
  EXPECT_GT(group.ticket_end, first / 2 + 120);
}

TEST(Machine, ATicketsLifetimeIsRenewedInTimeWhereStepsAreSlow) {
  TestCluster cluster;
  ConnectWorkers(cluster, 1);
  v1::JobSpec spec = TestSpec("a", 1, 100000);
  spec.mutable_fault_tolerance()->set_hang_seconds(86400);
  cluster.Submit(spec);
  cluster.StartRanks("a");
  for (int i = 0; i < 100; ++i) {
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
  }
  EXPECT_EQ(cluster.Count("worker-0", Kind::kTicket), 2);
}

TEST(Machine, ReportsAreDurableBeforeTheyAreAcknowledgedAndDuplicatesCountOnce) {
  TestCluster cluster;
  ConnectWorkers(cluster, 1);
  cluster.Submit(TestSpec("a", 1, 10));
  cluster.StartRanks("a");
  cluster.Report("a", 1);
  cluster.Report("a", 2);
  cluster.Report("a", 1);
  EXPECT_EQ(cluster.Count("worker-0", Kind::kReportsDurable), 0);
  EXPECT_EQ(cluster.job("a").record.step(), 2);
  cluster.Pass(std::chrono::milliseconds(250));
  ASSERT_EQ(cluster.Count("worker-0", Kind::kReportsDurable), 1);
  EXPECT_EQ(cluster.Last("worker-0", Kind::kReportsDurable)->reports_durable().step(), 2);
  EXPECT_EQ(ReadHistory(cluster.store(), "a", 0, 10)->size(), 2u);
  // A worker that missed the acknowledgement resends the report and gets another acknowledgement.
  cluster.Report("a", 2);
  EXPECT_EQ(cluster.Count("worker-0", Kind::kReportsDurable), 2);
}

TEST(Machine, StepEventsCarryMfuOnlyWhereEveryPeakIsKnown) {
  TestCluster cluster;
  ConnectWorkers(cluster, 2);
  cluster.Submit(TestSpec("a", 2, 10));
  cluster.StartRanks("a");
  cluster.Report("a", 1);
  // 1e6 FLOPs in 0.5 s on two devices of 1e9 FLOP/s.
  EXPECT_DOUBLE_EQ(cluster.updates.back().update.step().mfu(), 1e6 / (2 * 1e9 * 0.5));
  v1::JobSpec spec = TestSpec("b", 1, 10);
  spec.mutable_training()->set_compute_dtype("bfloat16");
  cluster.Connect("worker-2");
  cluster.Submit(spec);
  cluster.StartRanks("b");
  cluster.Report("b", 1);
  EXPECT_FALSE(cluster.updates.back().update.step().has_mfu());
}

TEST(Machine, APlainCancelIsAcknowledgedOnceDurableAndFreesDevicesWhenTheRanksAreGone) {
  TestCluster cluster;
  ConnectWorkers(cluster, 1);
  cluster.Submit(TestSpec("a", 1, 10));
  cluster.StartRanks("a");
  const Effects effects = Cancel(cluster, "jobs/a", false);
  ASSERT_EQ(effects.replies.size(), 1u);
  EXPECT_EQ(std::get<v1::Job>(effects.replies[0].value).state(), v1::JOB_STATE_CANCELLED);
  EXPECT_FALSE(cluster.Last("worker-0", Kind::kStopRanks)->stop_ranks().finished());
  EXPECT_EQ(cluster.state().fleet.leases.size(), 1u);
  cluster.StopRanks("a", 1, {"worker-0"});
  EXPECT_THAT(cluster.state().fleet.leases, IsEmpty());
  cluster.Restart();
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_CANCELLED);
}

TEST(Machine, ACancelWithCheckpointEndsAfterTheCommitInsideTheGrantedWindow) {
  TestCluster cluster;
  ConnectWorkers(cluster, 2);
  cluster.Submit(TestSpec("a", 2, 1000));
  cluster.StartRanks("a");
  cluster.Report("a", 1);
  EXPECT_THAT(Cancel(cluster, "a", true).replies, IsEmpty());
  const v1::CoordinatorMessage* const request = cluster.Last("worker-1", Kind::kCheckpointRequest);
  ASSERT_NE(request, nullptr);
  EXPECT_TRUE(request->checkpoint_request().intent().then_stop());
  EXPECT_EQ(request->checkpoint_request().intent().step(), 0);
  EXPECT_EQ(ShownState(cluster.job("a")), v1::JOB_STATE_CHECKPOINTING);
  const int64_t attempt = request->checkpoint_request().intent().attempt();
  cluster.Report("a", 2);
  cluster.replies.clear();
  cluster.Commit("a", attempt, 2);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_CANCELLED);
  ASSERT_EQ(cluster.replies.size(), 1u);
  EXPECT_EQ(NewestCommit(cluster.job("a"))->step(), 2);
  // Resume continues from that step.
  cluster.StopRanks("a", 1, {"worker-0", "worker-1"});
  ASSERT_TRUE(Resume(cluster, "a").replies[0].status.ok());
  EXPECT_EQ(cluster.Last("worker-0", Kind::kStartRanks)->start_ranks().restore_path(),
            NewestCommit(cluster.job("a"))->path());
  EXPECT_EQ(cluster.Last("worker-0", Kind::kStartRanks)->start_ranks().group_epoch(), 2u);
}

TEST(Machine, ResumeTakesNoFewerStepsThanAreCompletedHoweverTheJobEnded) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  ReportUpTo(cluster, 1, 10);
  cluster.Commit("a", AttemptOf(cluster, 10), 10);
  Cancel(cluster, "a", false);
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_CANCELLED);
  v1::JobSpec overrides;
  overrides.mutable_training()->set_steps(10);
  const Status refused = Resume(cluster, "a", overrides).replies[0].status;
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  ASSERT_EQ(ViolationsOf(refused).size(), 1u) << refused;
  EXPECT_EQ(ViolationsOf(refused)[0].field, "training.steps");
  EXPECT_EQ(ViolationsOf(refused)[0].description,
            "is 10, not above the 10 steps that job a has completed");
  overrides.mutable_training()->set_steps(11);
  EXPECT_TRUE(Resume(cluster, "a", overrides).replies[0].status.ok());
}

TEST(Machine, ResumeKeepsTheModelAndMayTakeMoreSteps) {
  TestCluster cluster;
  ConnectWorkers(cluster, 1);
  cluster.Submit(TestSpec("a", 1, 10));
  EXPECT_EQ(Resume(cluster, "a").replies[0].status.code(), StatusCode::kFailedPrecondition);
  Cancel(cluster, "a", false);
  v1::JobSpec model;
  model.mutable_model()->set_hidden_size(8);
  const Status kept = Resume(cluster, "a", model).replies[0].status;
  EXPECT_EQ(kept.code(), StatusCode::kInvalidArgument);
  ASSERT_EQ(ViolationsOf(kept).size(), 1u) << kept;
  EXPECT_EQ(ViolationsOf(kept)[0].field, "model.hidden_size");
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_CANCELLED);
  v1::JobSpec steps;
  steps.mutable_training()->set_steps(20);
  EXPECT_TRUE(Resume(cluster, "a", steps).replies[0].status.ok());
  EXPECT_EQ(cluster.job("a").steps(), 20);
}

TEST(Machine, AResumedJobMayTakeAnotherLayoutAlsoThroughARestartWhileItWaits) {
  TestCluster cluster;
  ConnectWorkers(cluster, 2);
  cluster.Submit(TestSpec("a", 2, 1000));
  cluster.StartRanks("a");
  cluster.Report("a", 1);
  Cancel(cluster, "a", true);
  const int64_t attempt =
      cluster.Last("worker-0", Kind::kCheckpointRequest)->checkpoint_request().intent().attempt();
  cluster.Report("a", 2);
  cluster.Commit("a", attempt, 2);
  cluster.StopRanks("a", 1, {"worker-0", "worker-1"});
  v1::JobSpec elsewhere;
  elsewhere.mutable_checkpoint()->set_initial_load("/other/step-9");
  const Status own = Resume(cluster, "a", elsewhere).replies[0].status;
  ASSERT_EQ(ViolationsOf(own).size(), 1u) << own;
  EXPECT_EQ(ViolationsOf(own)[0].field, "checkpoint.initial_load");

  v1::JobSpec degrees;
  degrees.mutable_parallelism()->set_data_parallel_replicate_degree(3);
  ASSERT_TRUE(Resume(cluster, "a", degrees).replies[0].status.ok());
  EXPECT_FALSE(cluster.job("a").plan.has_device()) << "another layout is placed anew";
  // It waits for a third device; a restart must not give it its former group's ranks back.
  cluster.Restart();
  for (int i = 0; i < 2; ++i) cluster.Reconnect(fmt::format("worker-{}", i));
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_QUEUED);
  cluster.Connect("worker-2");
  const v1::CoordinatorMessage* const start = cluster.Last("worker-2", Kind::kStartRanks);
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(start->start_ranks().plan().ranks_size(), 3);
  EXPECT_EQ(start->start_ranks().restore_path(), NewestCommit(cluster.job("a"))->path());
}

// Whether at the submission or at a resume, and across restarts of the coordinator.
TEST(Machine, AStatedDecayOverAllStepsStaysWhenAResumedJobTakesMoreSteps) {
  for (const bool at_submission : {false, true}) {
    TestCluster cluster;
    ConnectWorkers(cluster, 1);
    v1::JobSpec spec = TestSpec("a", 1, 10);
    if (at_submission) spec.mutable_lr_schedule()->set_decay_steps(10);
    cluster.Submit(spec);
    for (const int64_t steps : {20, 30}) {
      Cancel(cluster, "a", false);
      cluster.Restart();
      cluster.Reconnect("worker-0");
      v1::JobSpec more;
      more.mutable_training()->set_steps(steps);
      if (!at_submission && steps == 20) more.mutable_lr_schedule()->set_decay_steps(20);
      ASSERT_TRUE(Resume(cluster, "a", more).replies[0].status.ok());
      EXPECT_EQ(cluster.job("a").spec.lr_schedule().decay_steps(), at_submission ? 10 : 20);
    }
  }
}

TEST(Machine, UnknownJobsAreNotFound) {
  TestCluster cluster;
  EXPECT_EQ(Cancel(cluster, "x", false).replies[0].status.code(), StatusCode::kNotFound);
  const Status unknown = Resume(cluster, "x").replies[0].status;
  EXPECT_EQ(unknown.code(), StatusCode::kNotFound);
  ASSERT_EQ(ViolationsOf(unknown).size(), 1u) << unknown;
  EXPECT_EQ(ViolationsOf(unknown)[0].field, "name");
  EXPECT_EQ(Message(unknown), "job is \"x\": there is no such job");
  CreateCheckpointCall call{9, {}};
  call.request.set_job("x");
  const Status of_checkpoint = cluster.Do(call).replies[0].status;
  EXPECT_EQ(of_checkpoint.code(), StatusCode::kNotFound);
  EXPECT_EQ(ViolationsOf(of_checkpoint)[0].field, "job");
  EXPECT_EQ(Message(of_checkpoint), Message(unknown)) << "whatever the name of the field";
  v1::GetJobResponse response;
  v1::GetJobRequest request;
  request.set_name("x");
  EXPECT_EQ(ViewJob(cluster.state(), request, &response).code(), StatusCode::kNotFound);
}

TEST(Machine, MessagesOfStaleEpochsStrangersAndFormerLeadersChangeNothing) {
  TestCluster cluster;
  ConnectWorkers(cluster, 3);
  cluster.Submit(TestSpec("a", 2, 10));
  cluster.StartRanks("a");
  v1::WorkerMessage message;
  message.mutable_step_report()->set_job("a");
  message.mutable_step_report()->set_group_epoch(1);
  message.mutable_step_report()->set_step(1);
  v1::WorkerMessage stale = message;
  stale.mutable_step_report()->set_group_epoch(0);
  cluster.SendFrom("worker-0", stale);
  cluster.SendFrom("worker-2", message);  // rank 0 does not run there
  v1::WorkerMessage former = message;
  former.set_leader_epoch(cluster.state().leader_epoch + 1);
  cluster.SendFrom("worker-0", former);
  v1::WorkerMessage no_rank = message;
  no_rank.mutable_step_report()->set_rank(7);
  cluster.SendFrom("worker-0", no_rank);
  EXPECT_EQ(cluster.job("a").record.step(), 0);
  cluster.SendFrom("worker-0", message);
  EXPECT_EQ(cluster.job("a").record.step(), 1);
}

TEST(Machine, ListsComeInPages) {
  TestCluster cluster;
  for (int i = 0; i < 5; ++i) cluster.Submit(TestSpec(fmt::format("job-{}", 9 - i), 1, 10));
  v1::ListJobsRequest request;
  request.set_page_size(2);
  std::vector<std::string> names;
  do {
    v1::ListJobsResponse response;
    ASSERT_TRUE(ViewJobs(cluster.state(), request, {}, &response).ok());
    for (const v1::Job& job : response.jobs()) names.push_back(job.name());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(names,
              ElementsAre("jobs/job-9", "jobs/job-8", "jobs/job-7", "jobs/job-6", "jobs/job-5"));
  v1::ListJobsResponse response;
  request.set_page_token("garbage");
  EXPECT_EQ(ViewJobs(cluster.state(), request, {}, &response).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace troupe
