// Tests which hosts are chosen after a fault, and how bad hosts come back.
#include "coordinator/faults/host_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "coordinator/faults/culprit.h"
#include "coordinator/machine/views.h"
#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Kind = v1::CoordinatorMessage;

const TimeLimits kHostLimits = MakeTimeLimits(3);

void LetPass(TestCluster& cluster, Duration duration) {
  const Duration step = std::min<Duration>(duration, std::chrono::seconds(1));
  for (Duration passed{}; passed < duration; passed += step) {
    cluster.Heartbeat();
    cluster.Pass(step);
  }
}

// Returns the worker of rank 0 of job `a`.
std::string WorkerOf(const TestCluster& cluster) {
  return cluster.job("a").last_group.ranks(0).worker();
}

std::vector<v1::SetAside> SetAsideOf(TestCluster& cluster, const std::string& worker) {
  v1::ListWorkersResponse response;
  EXPECT_TRUE(ViewWorkers(cluster.state(), {}, {}, &response).ok());
  for (const v1::WorkerStatus& status : response.workers()) {
    if (status.name() == worker) return {status.set_aside().begin(), status.set_aside().end()};
  }
  ADD_FAILURE() << "no worker " << worker;
  return {};
}

// Loses worker-0 twice; it reconnects at once each time and is then set aside. Job `a`, with one
// rank and slow steps, runs on worker-1.
void SetWorkerAside(TestCluster& cluster) {
  cluster.Connect("worker-0");
  v1::JobSpec spec = TestSpec("a", 1, 100);
  spec.mutable_fault_tolerance()->set_hang_seconds(600);
  cluster.Submit(spec);
  cluster.StartRanks("a");
  for (int time = 0; time < 2; ++time) {
    if (time == 1) cluster.Connect("worker-1");
    cluster.Disconnect("worker-0");
    cluster.Connect("worker-0");
    if (time == 0) cluster.StartRanks("a");
  }
  ASSERT_EQ(WorkerOf(cluster), "worker-1");
  cluster.StartRanks("a");
  ASSERT_EQ(SetAsideOf(cluster, "worker-0").size(), 1u);
}

// Returns the burn-in requested from worker-0; 0: none.
uint64_t BurnInOf(TestCluster& cluster) {
  const v1::CoordinatorMessage* const asked = cluster.Last("worker-0", Kind::kBurnIn);
  return asked == nullptr ? 0 : asked->burn_in().request();
}

void SayBurnt(TestCluster& cluster, uint64_t request, bool sound) {
  v1::WorkerMessage message;
  message.mutable_burn_in_done()->set_request(request);
  message.mutable_burn_in_done()->set_sound(sound);
  if (!sound) message.mutable_burn_in_done()->set_reason("cpu: element 7 is 3, must be 4");
  cluster.SendFrom("worker-0", message);
}

TEST(HostFaults, AfterARanksExitASpareIsTaken) {
  TestCluster cluster;
  RunJob(cluster, 1, 2);
  ASSERT_EQ(WorkerOf(cluster), "worker-0");
  cluster.Crash("a", 0, 3);
  EXPECT_EQ(WorkerOf(cluster), "worker-1");
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
}

TEST(HostFaults, AHostWhoseRanksExitAtOnceCostsOneRestartWhileASpareIsFree) {
  TestCluster cluster;
  RunJob(cluster, 1, 2);
  for (int life = 0; life < 10; ++life) {
    if (WorkerOf(cluster) == "worker-0") cluster.Crash("a", 0, 3);
    LetPass(cluster, std::chrono::seconds(1));
  }
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
}

// Returns whether job `a` has a rank on `worker`.
bool HasRankOn(const TestCluster& cluster, const std::string& worker) {
  const auto& ranks = cluster.job("a").last_group.ranks();
  return std::any_of(ranks.begin(), ranks.end(), [&](const v1::RankPlacement& placement) {
    return placement.worker() == worker;
  });
}

// Rank 1 of job `a` reports that its link to rank 0 failed; the ranks end, and the job is placed
// again.
void BreakLink(TestCluster& cluster) {
  const uint64_t epoch = cluster.job("a").record.group_epoch();
  v1::WorkerMessage message;
  v1::RankFailed& failed = *message.mutable_rank_failed();
  failed.set_job("a");
  failed.set_group_epoch(epoch);
  failed.set_rank(1);
  failed.set_secondary(true);
  failed.set_cause("COLLECTIVE");
  failed.set_message("all_reduce: send: Connection reset by remote peer");
  failed.add_unreached_ranks(0);
  const auto ranks = cluster.job("a").last_group.ranks();
  cluster.SendFrom(ranks[1].worker(), message);
  cluster.StopRanks("a", epoch, {ranks[0].worker(), ranks[1].worker()});
  LetPass(cluster, std::chrono::seconds(10));
}

TEST(HostFaults, AHostWithABrokenLinkIsLeftAfterTwoFailuresOfItsLinks) {
  TestCluster cluster;
  RunJob(cluster, 2, 3);
  ASSERT_TRUE(HasRankOn(cluster, "worker-0"));
  BreakLink(cluster);
  EXPECT_THAT(cluster.job("a").record.last_failure().message(),
              HasSubstr("its link to rank 0 on worker-0 failed"));
  ASSERT_TRUE(HasRankOn(cluster, "worker-2")) << "it has no fault";
  if (HasRankOn(cluster, "worker-0")) {
    cluster.StartRanks("a");
    BreakLink(cluster);
  }
  EXPECT_FALSE(HasRankOn(cluster, "worker-0"));
  EXPECT_THAT(SetAsideOf(cluster, "worker-1"), IsEmpty());
}

TEST(HostFaults, ACollectiveFailureWithoutAFailedLinkBlamesNobody) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  v1::WorkerMessage message;
  message.mutable_rank_failed()->set_job("a");
  message.mutable_rank_failed()->set_group_epoch(1);
  message.mutable_rank_failed()->set_secondary(true);
  message.mutable_rank_failed()->set_cause("COLLECTIVE");
  cluster.SendFrom("worker-0", message);
  cluster.Pass(kHostLimits.drain);
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
  EXPECT_THAT(cluster.state().fleet.blame, IsEmpty());
}

TEST(HostFaults, AJobWaitsForTheEndOfItsOtherRanksRatherThanTakeABadHostAgain) {
  TestCluster cluster;
  RunJob(cluster, 2, 3);
  cluster.Crash("a", 0, 3);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING)
      << "worker-0 and worker-2 are free, and worker-1 will be";
  cluster.StopRanks("a", 1, {"worker-1"});
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(cluster.job("a").last_group.ranks(0).worker(), "worker-1");
  EXPECT_EQ(cluster.job("a").last_group.ranks(1).worker(), "worker-2");

  TestCluster stuck;
  RunJob(stuck, 2, 3);
  stuck.Crash("a", 0, 3);
  LetPass(stuck, kHostLimits.abort + kHostLimits.heartbeat);
  EXPECT_EQ(stuck.job("a").record.state(), v1::JOB_STATE_STARTING) << "a rank that does not end";
  EXPECT_EQ(stuck.job("a").last_group.ranks(0).worker(), "worker-0");
}

TEST(HostFaults, WhereNothingElseSufficesABadHostIsTakenAllTheSame) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  for (int life = 1; life <= 10; ++life) {
    cluster.Disconnect("worker-0");
    cluster.Connect("worker-0");
    cluster.StopRanks("a", static_cast<uint64_t>(life), {"worker-1"});
    ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING) << "life " << life;
    cluster.StartRanks("a");
  }
  EXPECT_FALSE(SetAsideOf(cluster, "worker-0").empty());
}

TEST(HostFaults, ADeviceThatFaultsIsAvoidedAndTheOtherDevicesOfItsHostAfterCleanOnes) {
  TestCluster cluster;
  cluster.Connect("worker-0", 2);
  cluster.Connect("worker-1", 1);
  cluster.Submit(TestSpec("a", 1, 100));
  cluster.StartRanks("a");
  v1::WorkerMessage stopped;
  stopped.mutable_rank_stopped()->set_job("a");
  stopped.mutable_rank_stopped()->set_group_epoch(1);
  stopped.mutable_rank_stopped()->set_crashed(true);
  stopped.mutable_rank_stopped()->set_cause("DEVICE_FAULT");
  cluster.SendFrom("worker-0", stopped);
  EXPECT_EQ(WorkerOf(cluster), "worker-1");
  cluster.Disconnect("worker-1");
  LetPass(cluster, std::chrono::seconds(4));
  EXPECT_EQ(WorkerOf(cluster), "worker-0");
  EXPECT_EQ(cluster.job("a").last_group.ranks(0).device(), 1);
}

TEST(HostFaults, AHostThatIsSetAsideIsNamedWithWhyAndUntilWhen) {
  TestCluster cluster;
  cluster.wall_ns = 1'000'000'000;
  SetWorkerAside(cluster);
  const std::vector<v1::SetAside> parts = SetAsideOf(cluster, "worker-0");
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_FALSE(parts[0].has_device());
  EXPECT_THAT(parts[0].reason(), HasSubstr("WORKER_LOST on worker-0"));
  EXPECT_THAT(parts[0].reason(), HasSubstr("job a"));
  EXPECT_EQ(parts[0].since_wall_time_ns(), 1'000'000'000);
  EXPECT_EQ(parts[0].burn_in_wall_time_ns(), int64_t{301} * 1'000'000'000);
  EXPECT_FALSE(parts[0].burning_in());
  EXPECT_THAT(SetAsideOf(cluster, "worker-1"), IsEmpty());
}

TEST(HostFaults, ItComesBackAfterASoundBurnIn) {
  TestCluster cluster;
  SetWorkerAside(cluster);
  ReportUpTo(cluster, 1, 1);
  EXPECT_EQ(BurnInOf(cluster), 0u);
  for (int part = 0; part < 10; ++part) {
    ReportUpTo(cluster, 2 + part, 2 + part);
    LetPass(cluster, kHostLimits.set_aside / 10);
  }
  const uint64_t request = BurnInOf(cluster);
  ASSERT_GT(request, 0u);
  EXPECT_TRUE(SetAsideOf(cluster, "worker-0").at(0).burning_in());
  SayBurnt(cluster, request + 1, true);
  EXPECT_FALSE(SetAsideOf(cluster, "worker-0").empty()) << "that is another's answer";
  SayBurnt(cluster, request, true);
  EXPECT_THAT(SetAsideOf(cluster, "worker-0"), IsEmpty());
}

TEST(HostFaults, OneThatIsNotSoundStaysSetAsideAndIsTriedAgainLater) {
  TestCluster cluster;
  SetWorkerAside(cluster);
  const auto wait = [&](Duration duration) {
    for (int part = 0; part < 20; ++part) {
      ReportUpTo(cluster, cluster.job("a").record.step() + 1, cluster.job("a").record.step() + 1);
      LetPass(cluster, duration / 20);
    }
  };
  wait(kHostLimits.set_aside);
  const uint64_t first = BurnInOf(cluster);
  SayBurnt(cluster, first, false);
  EXPECT_THAT(SetAsideOf(cluster, "worker-0").at(0).reason(), HasSubstr("element 7"));
  wait(kHostLimits.set_aside);
  EXPECT_EQ(BurnInOf(cluster), first);
  wait(kHostLimits.set_aside);
  const uint64_t second = BurnInOf(cluster);
  EXPECT_GT(second, first);
  // A burn-in without an answer has not succeeded.
  wait(std::chrono::seconds(200));
  EXPECT_THAT(SetAsideOf(cluster, "worker-0").at(0).reason(), HasSubstr("has not completed"));
  EXPECT_FALSE(SetAsideOf(cluster, "worker-0").at(0).burning_in());
}

TEST(HostFaults, ABurnInIsAskedForAnewOnANewStream) {
  TestCluster cluster;
  SetWorkerAside(cluster);
  for (int part = 0; part < 10; ++part) {
    ReportUpTo(cluster, 1 + part, 1 + part);
    LetPass(cluster, kHostLimits.set_aside / 10);
  }
  const uint64_t first = BurnInOf(cluster);
  ASSERT_GT(first, 0u);
  // The coordinator does not know that the old stream has ended.
  cluster.Reconnect("worker-0");
  const uint64_t second = BurnInOf(cluster);
  EXPECT_GT(second, first);
  SayBurnt(cluster, first, false);
  EXPECT_TRUE(SetAsideOf(cluster, "worker-0").at(0).burning_in()) << "that is the former's answer";
  SayBurnt(cluster, second, true);
  EXPECT_THAT(SetAsideOf(cluster, "worker-0"), IsEmpty());
}

TEST(HostFaults, ARankThatIsPlacedThereAllTheSamePutsTheBurnInOff) {
  TestCluster cluster;
  SetWorkerAside(cluster);
  for (int part = 0; part < 10; ++part) {
    ReportUpTo(cluster, 1 + part, 1 + part);
    LetPass(cluster, kHostLimits.set_aside / 10);
  }
  const uint64_t first = BurnInOf(cluster);
  ASSERT_GT(first, 0u);
  cluster.Submit(TestSpec("b", 1, 100));
  EXPECT_EQ(cluster.job("b").last_group.ranks(0).worker(), "worker-0") << "it is free after all";
  SayBurnt(cluster, first, false);
  EXPECT_FALSE(SetAsideOf(cluster, "worker-0").at(0).burning_in());
  CancelJobCall cancel{cluster.next_call++, {}};
  cancel.request.set_name("b");
  cluster.StartRanks("b");
  cluster.Do(cancel);
  cluster.StopRanks("b", 1, {"worker-0"});
  EXPECT_GT(BurnInOf(cluster), first) << "idle again";
}

TEST(HostFaults, ARestartOfTheCoordinatorKeepsWhatIsSetAside) {
  TestCluster cluster;
  SetWorkerAside(cluster);
  cluster.Restart();
  cluster.Reconnect("worker-0");
  cluster.Reconnect("worker-1");
  EXPECT_THAT(SetAsideOf(cluster, "worker-0").at(0).reason(), HasSubstr("WORKER_LOST"));
}

TEST(HostFaults, FaultsOfAJobThatFailsByItselfAreNotItsHosts) {
  TestCluster cluster;
  RunJob(cluster, 1, 2);
  for (int life = 1; life <= 10 && !HasEnded(cluster.job("a")); ++life) {
    cluster.Crash("a", 0, 3);
    LetPass(cluster, std::chrono::seconds(6));
    if (!HasEnded(cluster.job("a"))) cluster.StartRanks("a");
  }
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_FAILED);
  EXPECT_TRUE(cluster.state().fleet.blame.empty());
  cluster.Restart();
  EXPECT_TRUE(cluster.state().fleet.blame.empty());
}

// `rank` fails to write its part of the next checkpoint.
void FailWrite(TestCluster& cluster, int rank = 0, const std::string& cause = "") {
  CreateCheckpointCall call{cluster.next_call++, {}};
  call.request.set_job("a");
  cluster.Do(call);
  v1::WorkerMessage message;
  message.mutable_shard_failed()->set_job("a");
  message.mutable_shard_failed()->set_group_epoch(cluster.job("a").record.group_epoch());
  message.mutable_shard_failed()->set_attempt(cluster.job("a").record.last_attempt());
  message.mutable_shard_failed()->set_rank(rank);
  message.mutable_shard_failed()->set_reason("Input/output error");
  message.mutable_shard_failed()->set_cause(cause);
  cluster.SendFrom(cluster.job("a").last_group.ranks(rank).worker(), message);
}

TEST(HostFaults, AJobLeavesAHostThatCannotWriteItsShardOnceAnotherIsFree) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  for (int time = 0; time < 5; ++time) FailWrite(cluster);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING) << "there is nowhere to go";
  cluster.Connect("worker-1");
  FailWrite(cluster);
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  ASSERT_EQ(WorkerOf(cluster), "worker-1");
  EXPECT_THAT(SetAsideOf(cluster, "worker-0").at(0).reason(), HasSubstr("Input/output error"));
  // This host cannot write either, so no host is at fault, and the job stays.
  cluster.StartRanks("a");
  for (int time = 0; time < 5; ++time) FailWrite(cluster);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(cluster.job("a").record.restarts(), 1);
}

TEST(HostFaults, AFullFolderIsNoHostsFaultAndTheJobTrainsOn) {
  TestCluster cluster;
  RunJob(cluster, 2, 4);
  for (int time = 0; time < 4; ++time) {
    for (const int rank : {0, 1}) FailWrite(cluster, rank, "FOLDER_FULL");
  }
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(cluster.job("a").record.restarts(), 0);
  EXPECT_TRUE(cluster.state().fleet.blame.empty());
  EXPECT_TRUE(cluster.job("a").failed_writes.any()) << "it is no time to grow or to move";
  // One without an identity file, at a start.
  v1::Failure full;
  full.set_cause("FOLDER_FULL");
  EXPECT_EQ(CulpritOf(full), (Culprit{Charged::kDelayed, Blamed::kNobody}));
}

TEST(HostFaults, TwoHostsThatFailInTurnAreEachCounted) {
  TestCluster cluster;
  RunJob(cluster, 2, 4);
  for (int time = 0; time < 2; ++time) {
    FailWrite(cluster, 0);
    FailWrite(cluster, 1);
  }
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  FailWrite(cluster, 0);
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(WorkerOf(cluster), "worker-2");
  EXPECT_EQ(cluster.state().fleet.blame.at("worker-0").faults.size(), 3u) << "each once";
  EXPECT_EQ(cluster.state().fleet.blame.at("worker-1").faults.size(), 2u);
}

TEST(HostFaults, ACommitEndsTheCountOfFailedWrites) {
  TestCluster cluster;
  RunJob(cluster, 1, 2);
  for (int time = 0; time < 2; ++time) FailWrite(cluster);
  cluster.Report("a", 1);
  CreateCheckpointCall call{cluster.next_call++, {}};
  call.request.set_job("a");
  cluster.Do(call);
  cluster.Commit("a", cluster.job("a").record.last_attempt(), 1);
  for (int time = 0; time < 2; ++time) FailWrite(cluster);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
}

// A check at the start fails on `rank`, and all ranks end. Returns what the coordinator notes of
// the failure.
std::vector<std::string> FailStart(TestCluster& cluster, int rank, v1::RankFailed check) {
  v1::WorkerMessage message;
  v1::RankFailed& failed = *message.mutable_rank_failed();
  failed = std::move(check);
  failed.set_job("a");
  failed.set_group_epoch(cluster.job("a").record.group_epoch());
  failed.set_rank(rank);
  const auto placements = cluster.job("a").last_group.ranks();
  std::vector<std::string> notes = cluster.SendFrom(placements[rank].worker(), message).notes;
  for (const v1::RankPlacement& placement : placements) {
    v1::WorkerMessage stopped;
    stopped.mutable_rank_stopped()->set_job("a");
    stopped.mutable_rank_stopped()->set_group_epoch(failed.group_epoch());
    stopped.mutable_rank_stopped()->set_rank(placement.rank());
    cluster.SendFrom(placement.worker(), stopped);
  }
  return notes;
}

// On `rank`, the check at the start that the hosts share checkpoint.folder fails; `worker` is to
// blame (empty: the rank's).
std::vector<std::string> FailFolderProof(TestCluster& cluster, int rank,
                                         const std::string& worker) {
  v1::RankFailed failed;
  failed.set_cause("STORAGE");
  failed.set_code(static_cast<int>(StatusCode::kFailedPrecondition));
  failed.set_message("checkpoint.folder is /ck, which the hosts do not share");
  failed.set_blamed_worker(worker);
  return FailStart(cluster, rank, std::move(failed));
}

// Rank 0 finds that its host has too little shared memory, for all time or now.
void FailSharedMemory(TestCluster& cluster, StatusCode code) {
  v1::RankFailed failed;
  failed.set_cause("SHARED_MEMORY");
  failed.set_code(static_cast<int>(code));
  failed.set_message("/dev/shm has 1.0 MB, but 1 rank of this worker needs 4.3 MB");
  FailStart(cluster, 0, std::move(failed));
}

TEST(HostFaults, TooLittleSharedMemoryAtTheFirstStartSetsTheHostAsideAndASpareIsTried) {
  TestCluster cluster;
  for (const char* worker : {"worker-0", "worker-1"}) cluster.Connect(worker);
  cluster.Submit(TestSpec("a", 1, 100));
  FailSharedMemory(cluster, StatusCode::kFailedPrecondition);
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(WorkerOf(cluster), "worker-1");
  EXPECT_THAT(SetAsideOf(cluster, "worker-0").at(0).reason(), HasSubstr("/dev/shm has 1.0 MB"));
  FailSharedMemory(cluster, StatusCode::kFailedPrecondition);
  const v1::JobRecord& record = cluster.job("a").record;
  ASSERT_EQ(record.state(), v1::JOB_STATE_FAILED) << "no host is left";
  EXPECT_EQ(record.failure().cause(), "SHARED_MEMORY");
  EXPECT_THAT(record.failure().message(), HasSubstr("/dev/shm has 1.0 MB"));
  EXPECT_EQ(record.restarts(), 1) << "the start on the spare, and none of max_restarts";
}

TEST(HostFaults, SharedMemoryThatIsTooSmallOnThreeHostsEndsTheJobThoughOthersAreFree) {
  TestCluster cluster;
  for (int i = 0; i < 6; ++i) cluster.Connect(fmt::format("worker-{}", i));
  cluster.Submit(TestSpec("a", 1, 100));
  for (int time = 0; time < 3; ++time) {
    ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING) << time;
    FailSharedMemory(cluster, StatusCode::kFailedPrecondition);
    LetPass(cluster, std::chrono::seconds(4));
  }
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_FAILED);
}

TEST(HostFaults, SharedMemoryThatIsFullForNowIsTriedAgainAndCountsAgainstNoBudget) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  cluster.Submit(TestSpec("a", 1, 100));
  const int tries = cluster.job("a").spec.fault_tolerance().max_restarts() + 2;
  for (int time = 0; time < tries; ++time) {
    ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING) << time;
    FailSharedMemory(cluster, StatusCode::kResourceExhausted);
    LetPass(cluster, std::chrono::seconds(10));
  }
  cluster.StartRanks("a");
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
}

TEST(HostFaults, AFolderThatAHostDoesNotShareAtTheFirstStartSetsItAsideAndASpareIsTried) {
  TestCluster cluster;
  for (const char* worker : {"worker-0", "worker-1", "worker-2"}) cluster.Connect(worker);
  cluster.Submit(TestSpec("a", 2, 100));
  FailFolderProof(cluster, 0, "worker-1");
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(cluster.job("a").last_group.ranks(0).worker(), "worker-0");
  EXPECT_EQ(cluster.job("a").last_group.ranks(1).worker(), "worker-2");
  EXPECT_THAT(SetAsideOf(cluster, "worker-1").at(0).reason(), HasSubstr("hosts do not share"));
  cluster.StartRanks("a");
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  EXPECT_FALSE(SetAsideOf(cluster, "worker-1").empty()) << "until its burn-in";
}

TEST(HostFaults, AFolderThatNoHostHasEndsTheJobAndIsNoHostsFault) {
  TestCluster cluster;
  for (const char* worker : {"worker-0", "worker-1"}) cluster.Connect(worker);
  cluster.Submit(TestSpec("a", 1, 100));
  FailFolderProof(cluster, 0, "");
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(WorkerOf(cluster), "worker-1");
  FailFolderProof(cluster, 0, "");
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(cluster.job("a").record.failure().cause(), "STORAGE");
  EXPECT_THAT(SetAsideOf(cluster, "worker-0"), IsEmpty());
  EXPECT_THAT(SetAsideOf(cluster, "worker-1"), IsEmpty());
}

TEST(HostFaults, AFolderThatFailsOnThreeHostsEndsTheJobThoughOthersAreFree) {
  TestCluster cluster;
  for (int i = 0; i < 6; ++i) cluster.Connect(fmt::format("worker-{}", i));
  cluster.Submit(TestSpec("a", 1, 100));
  for (int time = 0; time < 3; ++time) {
    ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING) << time;
    FailFolderProof(cluster, 0, "");
    LetPass(cluster, std::chrono::seconds(4));
  }
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_FAILED);
  EXPECT_TRUE(cluster.state().fleet.blame.empty());
}

// Rank 0 cannot read the job's data on its host.
std::vector<std::string> FailData(TestCluster& cluster) {
  v1::RankFailed failed;
  failed.set_cause("STORAGE");
  failed.set_of_data(true);
  failed.set_code(static_cast<int>(StatusCode::kFailedPrecondition));
  failed.set_message("host h: data.train cannot be read: open /d.idx: No such file or directory");
  return FailStart(cluster, 0, std::move(failed));
}

TEST(HostFaults, DataThatAHostLacksAtTheFirstStartSetItAsideAndASpareIsTried) {
  TestCluster cluster;
  for (const char* worker : {"worker-0", "worker-1"}) cluster.Connect(worker);
  cluster.Submit(TestSpec("a", 1, 100));
  FailData(cluster);
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING);
  EXPECT_EQ(WorkerOf(cluster), "worker-1");
  EXPECT_THAT(SetAsideOf(cluster, "worker-0").at(0).reason(), HasSubstr("data.train"));
  cluster.StartRanks("a");
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
}

TEST(HostFaults, DataThatNoneOfThreeHostsHasEndTheJobAndAreNoHostsFault) {
  TestCluster cluster;
  for (int i = 0; i < 6; ++i) cluster.Connect(fmt::format("worker-{}", i));
  cluster.Submit(TestSpec("a", 1, 100));
  for (int time = 0; time < 3; ++time) {
    ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_STARTING) << time;
    FailData(cluster);
    LetPass(cluster, std::chrono::seconds(4));
  }
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(cluster.job("a").record.failure().cause(), "STORAGE");
  EXPECT_TRUE(cluster.state().fleet.blame.empty());
}

TEST(HostFaults, AnotherDaemonOfTheSameHostIsNoSpareForItsFolder) {
  TestCluster cluster;
  cluster.Connect("worker-0");
  cluster.Submit(TestSpec("a", 1, 100));
  cluster.Connect("worker-1");
  cluster.state().fleet.workers.at("worker-1").hello.set_host("host-of-worker-0");
  const std::vector<std::string> notes = FailFolderProof(cluster, 0, "");
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(notes, IsEmpty()) << "no host is set aside, not even for a moment";
}

TEST(HostFaults, AWorkerThatIsAskedToStopIsNotBlamedAndOneThatCrashesIs) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  v1::WorkerMessage goodbye;
  goodbye.mutable_goodbye();
  const SessionId session = cluster.worker("worker-1").session;
  const Effects left = cluster.SendFrom("worker-1", goodbye);
  const bool closes = std::any_of(
      left.messages.begin(), left.messages.end(),
      [&](const ToWorker& message) { return message.session == session && message.then_close; });
  EXPECT_TRUE(closes);
  EXPECT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RECOVERING);
  EXPECT_EQ(cluster.job("a").record.last_failure().cause(), "WORKER_STOPPED");
  std::vector<std::string> events;
  for (const JobUpdate& update : cluster.updates) {
    const v1::JobEvent& event = update.update.event();
    if (event.event() == "WORKER_STOPPED" || event.event() == "RANK_LOST")
      events.push_back(fmt::format("{} {}", event.event(), event.message()));
  }
  EXPECT_THAT(events, testing::ElementsAre("WORKER_STOPPED worker-1: it was asked to stop",
                                           "RANK_LOST rank 1 on worker-1"));
  cluster.Disconnect("worker-1");
  cluster.Connect("worker-1");
  EXPECT_TRUE(cluster.state().fleet.blame.empty());
  cluster.StopRanks("a", 1, {"worker-0"});
  cluster.StartRanks("a");
  ASSERT_EQ(cluster.job("a").record.state(), v1::JOB_STATE_RUNNING);
  cluster.Disconnect("worker-1");
  cluster.Connect("worker-1");
  EXPECT_EQ(cluster.job("a").record.last_failure().cause(), "WORKER_LOST");
  EXPECT_TRUE(cluster.state().fleet.blame.contains("worker-1"));
}

TEST(HostFaults, TheBurnInOfAHostThatCannotWriteTriesTheFolder) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  cluster.state().jobs.at("a").record.set_folder_id("f1");
  for (int time = 0; time < 2; ++time) FailWrite(cluster);
  CancelJobCall cancel{cluster.next_call++, {}};
  cancel.request.set_name("a");
  cluster.Do(cancel);
  cluster.StopRanks("a", 1, {"worker-0"});
  LetPass(cluster, kHostLimits.set_aside);
  ASSERT_GT(BurnInOf(cluster), 0u);
  EXPECT_EQ(cluster.Last("worker-0", Kind::kBurnIn)->burn_in().folders(0), "/ck/.troupe-folder-f1");
}

TEST(HostFaults, SoDoesThatOfAHostWhereTheFolderIsNotThereButNotWhereTheDataAreNot) {
  for (const bool of_data : {false, true}) {
    TestCluster cluster;
    RunJob(cluster, 1, 1);
    const Job& job = cluster.job("a");
    EXPECT_TRUE(job.group);
    for (int time = 0; time < 2; ++time) {
      if (time > 0) cluster.StartRanks("a");
      const uint64_t epoch = job.record.group_epoch();
      v1::WorkerMessage failed;
      failed.mutable_rank_failed()->set_job("a");
      failed.mutable_rank_failed()->set_group_epoch(epoch);
      failed.mutable_rank_failed()->set_cause("STORAGE");
      failed.mutable_rank_failed()->set_of_data(of_data);
      cluster.SendFrom("worker-0", failed);
      cluster.StopRanks("a", epoch, {"worker-0"});
    }
    ASSERT_EQ(SetAsideOf(cluster, "worker-0").size(), 1u);
    CancelJobCall cancel{cluster.next_call++, {}};
    cancel.request.set_name("a");
    cluster.Do(cancel);
    LetPass(cluster, kHostLimits.set_aside);
    ASSERT_GT(BurnInOf(cluster), 0u);
    const v1::BurnIn& burn_in = cluster.Last("worker-0", Kind::kBurnIn)->burn_in();
    ASSERT_EQ(burn_in.folders_size(), of_data ? 0 : 1);
    if (!of_data) EXPECT_EQ(burn_in.folders(0), "/ck");
  }
}

}  // namespace
}  // namespace troupe
