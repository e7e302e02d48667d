#include "worker/session/session.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace troupe::session {
namespace {

using v1::CoordinatorMessage;
using v1::WorkerMessage;

// Drives one daemon with two devices by hand.
class SessionTest : public ::testing::Test {
 protected:
  SessionTest() {
    Config config;
    config.identity.set_protocol_version(kProtocolVersion);
    config.identity.set_name("worker-0");
    config.identity.set_incarnation(5);
    config.identity.add_devices()->set_index(0);
    config.identity.add_devices()->set_index(1);
    config.log_directory = "/logs";
    config.tuning_directory = "/tuning";
    config.executable_directory = "/executables";
    config.cluster = "127.0.0.1:1";
    state_ = MakeState(std::move(config), now_);
  }

  template <typename What>
  Effects Do(What what) {
    last_ = Step(state_, Event{now_, std::move(what)});
    return last_;
  }
  Effects After(Duration duration) {
    now_ += duration;
    return Do(Tick{});
  }

  template <typename T>
  std::vector<T> All(const Effects& effects) {
    std::vector<T> found;
    for (const Effect& effect : effects) {
      if (const T* one = std::get_if<T>(&effect)) found.push_back(*one);
    }
    return found;
  }
  std::vector<WorkerMessage> Sent(const Effects& effects) {
    std::vector<WorkerMessage> sent;
    for (auto& one : All<SendToCoordinator>(effects)) sent.push_back(one.message);
    return sent;
  }

  Effects Received(CoordinatorMessage message, uint64_t leader_epoch = 0) {
    message.set_leader_epoch(leader_epoch == 0 ? leader_epoch_ : leader_epoch);
    return Do(StreamMessage{state_.stream, std::move(message)});
  }
  Effects Welcome(uint64_t leader_epoch) {
    leader_epoch_ = leader_epoch;
    CoordinatorMessage message;
    message.mutable_welcome()->set_leader_epoch(leader_epoch);
    message.mutable_welcome()->set_lease_seconds(3);
    return Received(message);
  }
  Effects Idle(int device) {
    v1::RankReport report;
    report.mutable_idle();
    return Do(RankReported{device, report});
  }
  Effects FromRank(int device, WorkerMessage message) {
    v1::RankReport report;
    *report.mutable_worker() = std::move(message);
    return Do(RankReported{device, report});
  }
  // Connects the stream; both processes become idle.
  void ConnectIdle() {
    Do(Tick{});
    Welcome(1);
    Idle(0);
    Idle(1);
  }

  CoordinatorMessage Start(uint64_t epoch, std::vector<int> ranks = {0, 1},
                           const std::string& job = "jobs/a") {
    CoordinatorMessage message;
    v1::StartRanks& start = *message.mutable_start_ranks();
    start.set_job(job);
    start.set_group_epoch(epoch);
    for (int rank = 0; rank < 2; ++rank) {
      v1::RankPlacement& placement = *start.mutable_plan()->add_ranks();
      placement.set_rank(rank);
      placement.set_device(rank);
      placement.set_island("rack");
      placement.set_host("host");
    }
    for (int rank : ranks) start.add_ranks(rank);
    return message;
  }
  CoordinatorMessage Stop(uint64_t epoch) {
    CoordinatorMessage message;
    message.mutable_stop_ranks()->set_job("jobs/a");
    message.mutable_stop_ranks()->set_group_epoch(epoch);
    return message;
  }
  CoordinatorMessage TicketTo(uint64_t epoch, int64_t end_step) {
    CoordinatorMessage message;
    message.mutable_ticket()->set_job("jobs/a");
    message.mutable_ticket()->set_group_epoch(epoch);
    message.mutable_ticket()->set_end_step(end_step);
    return message;
  }
  WorkerMessage Report(uint64_t epoch, int rank, int64_t step) {
    WorkerMessage message;
    message.mutable_step_report()->set_job("jobs/a");
    message.mutable_step_report()->set_group_epoch(epoch);
    message.mutable_step_report()->set_rank(rank);
    message.mutable_step_report()->set_step(step);
    return message;
  }
  WorkerMessage Stopped(uint64_t epoch, int rank) {
    WorkerMessage message;
    message.mutable_rank_stopped()->set_job("jobs/a");
    message.mutable_rank_stopped()->set_group_epoch(epoch);
    message.mutable_rank_stopped()->set_rank(rank);
    return message;
  }

  MonotonicTime now_{std::chrono::seconds(100)};
  uint64_t leader_epoch_ = 1;
  State state_;
  Effects last_;
};

TEST_F(SessionTest, StartsAProcessForEachDeviceAndDialsAtOnce) {
  const Effects effects = Do(Tick{});
  EXPECT_EQ(All<StartProcess>(effects).size(), 2u);
  ASSERT_EQ(All<Dial>(effects).size(), 1u);
  EXPECT_EQ(All<Dial>(effects)[0].hello.hello().name(), "worker-0");
  EXPECT_EQ(All<Dial>(effects)[0].hello.hello().held_size(), 0);
}

TEST_F(SessionTest, BeginsRanksInWarmProcessesAndPassesTheirWordsOn) {
  ConnectIdle();
  const auto begun = All<SendToRank>(Received(Start(1)));
  ASSERT_EQ(begun.size(), 2u);
  EXPECT_EQ(begun[1].device, 1);
  EXPECT_EQ(begun[1].command.begin().rank(), 1);
  EXPECT_EQ(begun[1].command.begin().ranks_on_host(), 2);
  EXPECT_EQ(begun[1].command.begin().log_path(), "/logs/a/rank-1.worker-0.log");
  EXPECT_EQ(begun[1].command.begin().tuning_directory(), "/tuning");
  EXPECT_EQ(begun[1].command.begin().executable_directory(), "/executables");
  const auto sent = Sent(FromRank(1, Report(1, 1, 1)));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].leader_epoch(), 1u);
}

TEST_F(SessionTest, RanksOfOneHostAreCountedWhateverTheirIsland) {
  ConnectIdle();
  CoordinatorMessage start = Start(1);
  v1::Plan& plan = *start.mutable_start_ranks()->mutable_plan();
  // One rank on the same host in another island, one in the same island on another host.
  plan.mutable_ranks(0)->set_island("other rack");
  v1::RankPlacement& remote = *plan.add_ranks();
  remote.set_rank(2);
  remote.set_island("rack");
  remote.set_host("other host");
  const auto begun = All<SendToRank>(Received(start));
  EXPECT_EQ(begun[1].command.begin().ranks_on_host(), 2);
}

// A daemon of a host with two cores.
class CoresTest : public SessionTest {
 protected:
  CoresTest() {
    state_.config.cluster = "coordinator:1";
    state_.config.host_cores = {{0}, {1}};
    state_.config.allowed_cores = {0, 1};
    ConnectIdle();
  }
  CoordinatorMessage StartOn(int device, const std::string& job, int threads) {
    CoordinatorMessage message = Start(1, {0}, job);
    v1::Plan& plan = *message.mutable_start_ranks()->mutable_plan();
    plan.mutable_ranks()->RemoveLast();
    plan.mutable_ranks(0)->set_device(device);
    plan.set_threads_per_rank(threads);
    return message;
  }
  // Returns "device 0: 0,1" for each command and each message to the coordinator; "x2": shared by
  // two.
  std::vector<std::string> Moves(const Effects& effects) {
    std::vector<std::string> moves;
    const auto text = [](const v1::CoreSet& set) {
      return fmt::format("{}{}", fmt::join(set.cores(), ","),
                         set.shared_by() > 1 ? fmt::format(" x{}", set.shared_by()) : "");
    };
    for (const SendToRank& send : All<SendToRank>(effects)) {
      if (send.command.has_begin())
        moves.push_back(
            fmt::format("begin {}: {}", send.device, text(send.command.begin().cores())));
      if (send.command.has_cores())
        moves.push_back(fmt::format("move {}: {}", send.device, text(send.command.cores())));
    }
    for (const WorkerMessage& message : Sent(effects)) {
      if (!message.has_rank_cores()) continue;
      const v1::RankCores& report = message.rank_cores();
      moves.push_back(
          fmt::format("sent {}/{}: {}", report.job(), report.rank(), text(report.cores())));
    }
    std::sort(moves.begin(), moves.end());
    return moves;
  }
  using Lines = std::vector<std::string>;
};

TEST_F(CoresTest, ARankGivesUpCoresWhenAnotherJobBeginsAndGetsThemBackAtItsEnd) {
  EXPECT_EQ(Moves(Received(StartOn(0, "jobs/a", 2))),
            (Lines{"begin 0: 0,1", "sent jobs/a/0: 0,1"}));
  After(std::chrono::seconds(1));
  EXPECT_EQ(Moves(Received(StartOn(1, "jobs/b", 2))),
            (Lines{"begin 1: 1", "move 0: 0", "sent jobs/a/0: 0", "sent jobs/b/0: 1"}));
  WorkerMessage stopped = Stopped(1, 0);
  stopped.mutable_rank_stopped()->set_job("jobs/b");
  EXPECT_EQ(Moves(FromRank(1, stopped)), (Lines{"move 0: 0,1", "sent jobs/a/0: 0,1"}));
}

TEST_F(CoresTest, RanksOfOtherDaemonsOfTheHostAreCountedWithTheirOwn) {
  const Effects begun = Received(Start(1, {0}));  // rank 1 of the plan belongs to another daemon
  EXPECT_EQ(Moves(begun), (Lines{"begin 0: 0", "sent jobs/a/0: 0"}));
  ASSERT_EQ(All<PublishClaims>(begun).size(), 1u);
  const v1::CoreClaims own = All<PublishClaims>(begun)[0].claims;
  ASSERT_EQ(own.claims_size(), 1);
  EXPECT_EQ(own.claims(0).rank(), 0);
  EXPECT_EQ(own.claims(0).cluster(), "coordinator:1");
  // The report of that rank's own daemon changes nothing; a job of another cluster does.
  v1::CoreClaims other = own;
  other.mutable_claims(0)->set_rank(1);
  EXPECT_EQ(Moves(Do(OthersClaim{{other}})), Lines{});
  *other.add_claims() = other.claims(0);
  other.mutable_claims(1)->set_cluster("another:1");
  other.mutable_claims(1)->set_begin_ns(other.claims(0).begin_ns() + 1);
  EXPECT_EQ(Moves(Do(OthersClaim{{other}})), (Lines{"move 0: 0 x2", "sent jobs/a/0: 0 x2"}));
  EXPECT_EQ(Moves(Do(OthersClaim{})), (Lines{"move 0: 0", "sent jobs/a/0: 0"}));
}

TEST_F(CoresTest, RanksThatBeginLearnThatOtherDaemonsAreNotKnown) {
  const auto fault = [this](const Effects& effects) -> std::string {
    for (const SendToRank& send : All<SendToRank>(effects)) {
      if (send.command.has_begin()) return send.command.begin().core_table_fault();
    }
    return "no rank begins";
  };
  EXPECT_EQ(fault(Received(StartOn(0, "jobs/a", 1))), "");
  Do(CoreTableFault{"mkdir /nowhere: denied"});
  EXPECT_EQ(fault(Received(StartOn(1, "jobs/b", 1))), "mkdir /nowhere: denied");
}

TEST_F(CoresTest, ANewStreamIsSentTheCoresAgain) {
  Received(StartOn(0, "jobs/a", 2));
  Do(StreamClosed{state_.stream, "gone"});
  After(std::chrono::seconds(1));
  EXPECT_EQ(Moves(Welcome(2)), Lines{"sent jobs/a/0: 0,1"});
}

TEST_F(SessionTest, TheRanksWatchdogComesBeforeTheCoordinatorsUnlessStepsMayBeLong) {
  ConnectIdle();
  EXPECT_DOUBLE_EQ(All<SendToRank>(Received(Start(1)))[0].command.begin().hang_seconds(), 54);
  CoordinatorMessage large = Start(2);
  large.mutable_start_ranks()->mutable_plan()->set_model_flops_per_step(1e12);
  Received(large);
  Do(RankExited{0, 0, 9, "", ""});
  EXPECT_DOUBLE_EQ(All<SendToRank>(Idle(0))[0].command.begin().hang_seconds(), 5 * 1e12 / 2 / 2e9);
}

TEST_F(SessionTest, TheRanksWatchdogWaitsForAnotherToWriteACheckpoint) {
  ConnectIdle();
  CoordinatorMessage start = Start(1);
  v1::RankMemory* const memory = start.mutable_start_ranks()->mutable_plan()->add_memory();
  memory->set_parameter_bytes(2'000'000'000);
  memory->set_optimizer_bytes(4'000'000'000);
  start.mutable_start_ranks()->mutable_spec()->mutable_checkpoint()->set_folder("/ck");
  EXPECT_DOUBLE_EQ(All<SendToRank>(Received(start))[0].command.begin().hang_seconds(), 54 + 120);
}

TEST_F(SessionTest, ARankThatArrivesBeforeItsProcessIsBegunWhenTheProcessIsIdle) {
  Do(Tick{});
  Welcome(1);
  EXPECT_TRUE(All<SendToRank>(Received(Start(1))).empty());
  const auto begun = All<SendToRank>(Idle(1));
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun[0].command.begin().rank(), 1);
}

TEST_F(SessionTest, ARepeatedOrOlderStartHasNoEffect) {
  ConnectIdle();
  Received(Start(2));
  EXPECT_TRUE(Received(Start(2)).empty());
  EXPECT_TRUE(Received(Start(1)).empty());
}

TEST_F(SessionTest, AReadOfLogsNamesTheRanksThatHaveNotEnded) {
  ConnectIdle();
  CoordinatorMessage message;
  message.mutable_read_logs()->set_job("jobs/a");
  message.mutable_read_logs()->set_rank(-1);
  const auto running = [&] { return All<ReadRankLogs>(Received(message)).at(0).running; };
  EXPECT_TRUE(running().empty());
  Received(Start(1));
  EXPECT_EQ(running(), (std::set<int>{0, 1}));
  Received(Stop(1));
  FromRank(0, Stopped(1, 0));
  EXPECT_EQ(running(), (std::set<int>{1}));
  message.mutable_read_logs()->set_job("jobs/b");
  EXPECT_TRUE(running().empty()) << "another job";
}

TEST_F(SessionTest, AForgottenJobLosesItsLogsAndItsGroupEpochs) {
  ConnectIdle();
  Received(Start(2));
  Received(Stop(2));
  CoordinatorMessage forget;
  forget.mutable_forget_job()->set_job("jobs/a");
  Received(forget);
  EXPECT_TRUE(Received(Start(2)).empty()) << "its ranks have not ended";
  FromRank(0, Stopped(2, 0));
  FromRank(1, Stopped(2, 1));
  const auto removed = All<RemoveRankLogs>(Received(forget));
  ASSERT_EQ(removed.size(), 1u);
  EXPECT_EQ(removed[0].request.job(), "jobs/a");
  EXPECT_TRUE(state_.highest_epoch.empty());
}

TEST_F(SessionTest, ANewStreamForgetsTheGroupEpochsOfJobsWithoutARankHere) {
  ConnectIdle();
  for (int job = 0; job < 1000; ++job) Received(Start(3, {}, fmt::format("jobs/{}", job)));
  Received(Start(2));
  Do(StreamClosed{state_.stream, "test"});
  After(std::chrono::seconds(1));
  Welcome(1);
  EXPECT_THAT(state_.highest_epoch, testing::ElementsAre(testing::Pair("jobs/a", 2u)));
  EXPECT_TRUE(Received(Start(2)).empty());
}

TEST_F(SessionTest, MessagesOfALowerLeaderEpochHaveNoEffect) {
  Do(Tick{});
  Welcome(7);
  Idle(0);
  Idle(1);
  EXPECT_TRUE(Received(Start(1), 6).empty());
  EXPECT_FALSE(Received(Start(1), 7).empty());
}

TEST_F(SessionTest, AWelcomeOfALowerLeaderEpochIsHungUpOn) {
  ConnectIdle();
  Welcome(1);
  Do(StreamClosed{state_.stream, "gone"});
  After(std::chrono::seconds(1));
  state_.leader_epoch = 9;
  EXPECT_EQ(All<HangUp>(Welcome(8)).size(), 1u);
  EXPECT_EQ(state_.link, Link::kDown);
}

TEST_F(SessionTest, TicketsOfAnotherGroupEpochAreNotPassedOn) {
  ConnectIdle();
  Received(Start(2));
  EXPECT_TRUE(All<SendToRank>(Received(TicketTo(1, 50))).empty());
  EXPECT_TRUE(All<SendToRank>(Received(TicketTo(3, 50))).empty());
  EXPECT_EQ(All<SendToRank>(Received(TicketTo(2, 50))).size(), 2u);
}

TEST_F(SessionTest, AfterAReconnectReportsWhatItHoldsAndRepeatsWhatIsNotAcknowledged) {
  ConnectIdle();
  Received(Start(1));
  Received(TicketTo(1, 40));
  for (int64_t step = 1; step <= 3; ++step) FromRank(0, Report(1, 0, step));
  FromRank(1, Report(1, 1, 3));
  CoordinatorMessage durable;
  durable.mutable_reports_durable()->set_job("jobs/a");
  durable.mutable_reports_durable()->set_group_epoch(1);
  durable.mutable_reports_durable()->set_step(1);
  Received(durable);
  WorkerMessage vote;
  vote.mutable_shard_done()->set_job("jobs/a");
  vote.mutable_shard_done()->set_group_epoch(1);
  vote.mutable_shard_done()->set_rank(1);
  vote.mutable_shard_done()->set_attempt(4);
  FromRank(1, vote);
  Do(StreamClosed{state_.stream, "gone"});
  EXPECT_TRUE(Sent(FromRank(0, Report(1, 0, 4))).empty());

  const auto dialled = All<Dial>(After(std::chrono::seconds(1)));
  ASSERT_EQ(dialled.size(), 1u);
  const v1::Hello hello = dialled[0].hello.hello();
  ASSERT_EQ(hello.held_size(), 1);
  EXPECT_EQ(hello.held(0).ranks_size(), 2);
  EXPECT_EQ(hello.held(0).step(), 4);
  EXPECT_EQ(hello.held(0).ticket_end_step(), 40);
  EXPECT_EQ(hello.leader_epoch_seen(), 1u);
  std::vector<int64_t> steps;
  int votes = 0;
  for (const WorkerMessage& message : Sent(Welcome(2))) {
    EXPECT_EQ(message.leader_epoch(), 2u);
    if (message.has_step_report()) steps.push_back(message.step_report().step());
    if (message.has_shard_done()) {
      EXPECT_TRUE(steps.empty()) << "a later report would mean that the attempt was passed by";
      ++votes;
    }
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(votes, 1);
}

TEST_F(SessionTest, TheDeviceOfARankIsSentAgainUntilItIsReadyAndTheBookIsPassedOn) {
  ConnectIdle();
  Received(Start(1));
  WorkerMessage message;
  message.mutable_rank_device()->set_job("jobs/a");
  message.mutable_rank_device()->set_group_epoch(1);
  message.mutable_rank_device()->set_rank(1);
  message.mutable_rank_device()->set_id(7);
  EXPECT_EQ(Sent(FromRank(1, message)).size(), 1u);
  CoordinatorMessage book;
  book.mutable_device_book()->set_job("jobs/a");
  book.mutable_device_book()->set_group_epoch(1);
  EXPECT_EQ(All<SendToRank>(Received(book)).size(), 2u);
  book.mutable_device_book()->set_group_epoch(2);
  EXPECT_TRUE(All<SendToRank>(Received(book)).empty());

  const auto devices_sent_after_a_reconnect = [&](uint64_t leader_epoch) {
    Do(StreamClosed{state_.stream, "gone"});
    After(std::chrono::seconds(1));
    int devices = 0;
    for (const WorkerMessage& sent : Sent(Welcome(leader_epoch)))
      devices += sent.has_rank_device() && sent.rank_device().id() == 7 ? 1 : 0;
    return devices;
  };
  EXPECT_EQ(devices_sent_after_a_reconnect(2), 1);
  WorkerMessage ready;
  ready.mutable_rank_ready()->set_job("jobs/a");
  ready.mutable_rank_ready()->set_group_epoch(1);
  ready.mutable_rank_ready()->set_rank(1);
  FromRank(1, ready);
  EXPECT_EQ(devices_sent_after_a_reconnect(3), 0);
}

TEST_F(SessionTest, ManyReportsAreSentAPartAtATimeAndInOrder) {
  ConnectIdle();
  Received(Start(1));
  Do(StreamClosed{state_.stream, "gone"});
  for (int64_t step = 1; step <= 10000; ++step) FromRank(0, Report(1, 0, step));
  if (state_.link == Link::kDown) After(std::chrono::seconds(1));
  int64_t last = 0;
  const auto count = [&](const Effects& effects) {
    int reports = 0;
    for (const WorkerMessage& message : Sent(effects)) {
      if (!message.has_step_report()) continue;
      EXPECT_EQ(message.step_report().step(), ++last);
      ++reports;
    }
    return reports;
  };
  const auto durable = [&](int64_t step) {
    CoordinatorMessage message;
    message.mutable_reports_durable()->set_job("jobs/a");
    message.mutable_reports_durable()->set_group_epoch(1);
    message.mutable_reports_durable()->set_step(step);
    return Received(message);
  };
  EXPECT_EQ(count(Welcome(2)), 4096);
  EXPECT_EQ(count(FromRank(0, Report(1, 0, 10001))), 0) << "those before it are not sent";
  EXPECT_EQ(count(durable(4000)), 0);
  EXPECT_EQ(count(durable(4096)), 4096);
  WorkerMessage done;
  done.mutable_manifest_done()->set_job("jobs/a");
  done.mutable_manifest_done()->set_group_epoch(1);
  done.mutable_manifest_done()->set_attempt(4);
  EXPECT_TRUE(Sent(FromRank(0, done)).empty()) << "it may end the job and its history";
  const Effects rest = durable(8192);
  EXPECT_EQ(count(rest), 10001 - 8192);
  EXPECT_TRUE(Sent(rest).back().has_manifest_done());
  EXPECT_EQ(count(FromRank(0, Report(1, 0, 10002))), 1);
}

TEST_F(SessionTest, DialsSeveralTimesWithinTheTimeForWhichItsRanksAreKept) {
  ConnectIdle();
  CoordinatorMessage welcome;
  welcome.mutable_welcome()->set_leader_epoch(2);
  welcome.mutable_welcome()->set_lease_seconds(0.6);
  Do(StreamClosed{state_.stream, "gone"});
  After(std::chrono::seconds(1));
  Received(welcome, 2);
  for (int dial = 0; dial < 8; ++dial) {
    Do(StreamClosed{state_.stream, "gone"});
    EXPECT_LE(state_.dial_at - now_, std::chrono::milliseconds(100));
    EXPECT_EQ(All<Dial>(After(std::chrono::milliseconds(100))).size(), 1u);
  }
}

TEST_F(SessionTest, AFinalizedAttemptIsNotVotedForAgain) {
  ConnectIdle();
  Received(Start(1));
  WorkerMessage vote;
  vote.mutable_shard_failed()->set_job("jobs/a");
  vote.mutable_shard_failed()->set_group_epoch(1);
  vote.mutable_shard_failed()->set_rank(1);
  vote.mutable_shard_failed()->set_attempt(4);
  FromRank(1, vote);
  CoordinatorMessage finalized;
  finalized.mutable_checkpoint_finalized()->set_job("jobs/a");
  finalized.mutable_checkpoint_finalized()->set_group_epoch(1);
  finalized.mutable_checkpoint_finalized()->set_attempt(4);
  EXPECT_EQ(All<SendToRank>(Received(finalized)).size(), 2u);
  Do(StreamClosed{state_.stream, "gone"});
  After(std::chrono::seconds(1));
  EXPECT_TRUE(Sent(Welcome(1)).empty());
}

TEST_F(SessionTest, AManifestThatIsWrittenIsNotWrittenTwice) {
  ConnectIdle();
  Received(Start(1));
  CoordinatorMessage write;
  write.mutable_write_manifest()->set_job("jobs/a");
  write.mutable_write_manifest()->set_group_epoch(1);
  write.mutable_write_manifest()->mutable_manifest()->set_attempt(4);
  ASSERT_EQ(All<SendToRank>(Received(write)).size(), 1u);
  WorkerMessage done;
  done.mutable_manifest_done()->set_job("jobs/a");
  done.mutable_manifest_done()->set_group_epoch(1);
  done.mutable_manifest_done()->set_attempt(4);
  done.mutable_manifest_done()->set_digest("sha256:x");
  FromRank(0, done);
  const Effects again = Received(write);
  EXPECT_TRUE(All<SendToRank>(again).empty());
  ASSERT_EQ(Sent(again).size(), 1u);
  EXPECT_EQ(Sent(again)[0].manifest_done().digest(), "sha256:x");
}

TEST_F(SessionTest, ACrashIsReportedAtOnceWithItsCauseAndTheProcessIsReplaced) {
  ConnectIdle();
  Received(Start(1));
  const Effects effects = Do(RankExited{0, 0, 11, "step 3: forward", ""});
  ASSERT_EQ(Sent(effects).size(), 1u);
  const v1::RankStopped stopped = Sent(effects)[0].rank_stopped();
  EXPECT_TRUE(stopped.crashed());
  EXPECT_EQ(stopped.signal(), 11);
  EXPECT_EQ(stopped.last_operation(), "step 3: forward");
  EXPECT_EQ(All<StartProcess>(effects).size(), 1u);
}

TEST_F(SessionTest, AStopIsPassedOnAndAnsweredByTheRankWhoseProcessStaysWarm) {
  ConnectIdle();
  Received(Start(1));
  EXPECT_EQ(All<SendToRank>(Received(Stop(1))).size(), 2u);
  const auto sent = Sent(FromRank(0, Stopped(1, 0)));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_FALSE(sent[0].rank_stopped().crashed());
  Idle(0);
  FromRank(1, Stopped(1, 1));
  Idle(1);
  EXPECT_TRUE(state_.groups.empty());
  const Effects next = Received(Start(2));
  EXPECT_TRUE(All<StartProcess>(next).empty());
  EXPECT_EQ(All<SendToRank>(next).size(), 2u);
}

TEST_F(SessionTest, ARankThatDoesNotStopInTimeIsKilledAndItsEndReported) {
  ConnectIdle();
  Received(Start(1));
  Received(Stop(1));
  FromRank(1, Stopped(1, 1));
  Idle(1);
  EXPECT_TRUE(All<KillProcess>(After(std::chrono::milliseconds(1400))).empty());
  const auto killed = All<KillProcess>(After(std::chrono::milliseconds(200)));
  ASSERT_EQ(killed.size(), 1u);
  EXPECT_EQ(killed[0].device, 0);
  const Effects effects = Do(RankExited{0, 0, 9, "step 3: update", ""});
  ASSERT_EQ(Sent(effects).size(), 1u);
  EXPECT_FALSE(Sent(effects)[0].rank_stopped().crashed());
}

TEST_F(SessionTest, ANewerGroupEpochKillsTheOlderRanksAndBeginsOnceTheyAreGone) {
  ConnectIdle();
  Received(Start(1));
  const Effects effects = Received(Start(2));
  EXPECT_EQ(All<KillProcess>(effects).size(), 2u);
  EXPECT_TRUE(All<SendToRank>(effects).empty());
  const auto sent = Sent(Do(RankExited{0, 0, 9, "", ""}));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].rank_stopped().group_epoch(), 1u);
  const auto begun = All<SendToRank>(Idle(0));
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun[0].command.begin().start().group_epoch(), 2u);
  EXPECT_TRUE(Sent(FromRank(0, Report(1, 0, 5))).empty())
      << "a word of the old epoch was passed on";
}

TEST_F(SessionTest, ADeviceIsNeverGivenTwoRanks) {
  ConnectIdle();
  Received(Start(1));
  const auto sent = Sent(Received(Start(1, {0}, "jobs/b")));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].rank_stopped().job(), "jobs/b");
  EXPECT_TRUE(sent[0].rank_stopped().crashed());
  EXPECT_NE(sent[0].rank_stopped().message().find("device 0 has rank 0 of jobs/a"),
            std::string::npos);
}

TEST_F(SessionTest, AStopBeforeTheRankBeganNeedsNoProcess) {
  Do(Tick{});
  Welcome(1);
  Received(Start(1, {0}));
  const auto sent = Sent(Received(Stop(1)));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent[0].has_rank_stopped());
  EXPECT_TRUE(All<SendToRank>(Idle(0)).empty());
}

TEST_F(SessionTest, TheEndOfARankWithoutAStreamIsReportedOnTheNextOne) {
  ConnectIdle();
  Received(Start(1, {0}));
  Do(StreamClosed{state_.stream, "gone"});
  EXPECT_TRUE(Sent(Do(RankExited{0, 1, 0, "", ""})).empty());
  EXPECT_EQ(All<Dial>(After(std::chrono::seconds(1)))[0].hello.hello().held_size(), 0);
  const auto sent = Sent(Welcome(1));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].rank_stopped().exit_code(), 1);
}

TEST_F(SessionTest, DialsAgainWithGrowingBoundedWaits) {
  Do(Tick{});
  Duration waited{};
  for (int i = 0; i < 12; ++i) {
    Do(StreamClosed{state_.stream, "refused"});
    waited = NextDeadline(state_) - now_;
    EXPECT_LE(waited, std::chrono::milliseconds(500));
    ASSERT_EQ(All<Dial>(After(waited)).size(), 1u);
  }
  EXPECT_EQ(waited, std::chrono::milliseconds(500));
}

TEST_F(SessionTest, ASilentCoordinatorIsDialledAgainAndRanksAreLeftAlone) {
  ConnectIdle();
  Received(Start(1));
  const Effects effects = After(std::chrono::seconds(3));
  EXPECT_EQ(All<HangUp>(effects).size(), 1u);
  EXPECT_TRUE(All<KillProcess>(effects).empty());
  EXPECT_TRUE(All<SendToRank>(effects).empty());
}

TEST_F(SessionTest, HeartbeatsAreSentSixTimesALease) {
  ConnectIdle();
  EXPECT_TRUE(All<SendHeartbeat>(After(std::chrono::milliseconds(499))).empty());
  EXPECT_EQ(All<SendHeartbeat>(After(std::chrono::milliseconds(1))).size(), 1u);
}

TEST_F(SessionTest, ARefusalWithoutRetryEndsTheDaemonAndOneWithRetryIsDialledAgain) {
  Do(Tick{});
  CoordinatorMessage refused;
  refused.mutable_refused()->set_message("still alive");
  refused.mutable_refused()->set_retry(true);
  EXPECT_TRUE(All<EndDaemon>(Received(refused)).empty());
  ASSERT_EQ(All<Dial>(After(std::chrono::seconds(1))).size(), 1u);
  refused.mutable_refused()->set_retry(false);
  const auto ended = All<EndDaemon>(Received(refused));
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].exit_code, 1);
  EXPECT_NE(ended[0].message.find("still alive"), std::string::npos);
}

TEST_F(SessionTest, ARefusedWorkerWithoutRanksDialsEverLessOftenAndReportsItAtABoundedRate) {
  CoordinatorMessage refused;
  refused.mutable_refused()->set_message("still alive");
  refused.mutable_refused()->set_retry(true);
  Do(Tick{});
  int dials = 0;
  int notes = 0;
  for (int tenths = 0; tenths < 600; ++tenths) {
    if (state_.link == Link::kDialled)
      notes += static_cast<int>(All<Note>(Received(refused)).size());
    dials += static_cast<int>(All<Dial>(After(std::chrono::milliseconds(100))).size());
  }
  EXPECT_LE(dials, 15) << "in a minute";
  EXPECT_GE(notes, 2);
  EXPECT_LE(notes, 3);
}

TEST_F(SessionTest, AWorkerWithoutAccessDialsEverLessOftenAlsoWithRanks) {
  ConnectIdle();
  Received(Start(1));
  Duration waited{};
  int dials_of_grace = 0;
  Duration since{};
  for (int i = 0; i < 12; ++i) {
    Do(StreamClosed{state_.stream, "revoked", /*access_refused=*/true});
    waited = state_.dial_at - now_;
    since += waited;
    if (since < state_.limits.reconnect_grace) ++dials_of_grace;
    ASSERT_EQ(All<Dial>(After(waited)).size(), 1u);
  }
  EXPECT_EQ(waited, std::chrono::seconds(4));
  EXPECT_GE(dials_of_grace, 3);
}

TEST_F(SessionTest, AWrongAddressIsNamedAndNamedAgainWhileNothingAnswers) {
  std::vector<std::string> notes;
  for (int second = 0; second < 60; ++second) {
    for (const Note& note : All<Note>(After(std::chrono::seconds(1)))) notes.push_back(note.text);
  }
  ASSERT_EQ(notes.size(), 2u) << fmt::format("{}", fmt::join(notes, "\n"));
  EXPECT_EQ(notes[0], "cannot reach 127.0.0.1:1: no answer came within 3 s; it tries again");
  EXPECT_EQ(notes[1], notes[0]);
}

TEST_F(SessionTest, AWorkerWithoutTlsIsRemindedOfItWhereNothingAnswers) {
  state_.config.has_tls = false;
  std::vector<std::string> notes;
  for (int second = 0; second < 10; ++second) {
    for (const Note& note : All<Note>(After(std::chrono::seconds(1)))) notes.push_back(note.text);
  }
  ASSERT_EQ(notes.size(), 1u) << fmt::format("{}", fmt::join(notes, "\n"));
  EXPECT_EQ(notes[0],
            "cannot reach 127.0.0.1:1: no answer came within 3 s (a coordinator with TLS answers "
            "only with --tls-dir); it tries again");
}

TEST_F(SessionTest, ADaemonThatIsAskedToStopSendsAGoodbyeAndEndsOnceTheStreamIsClosed) {
  ConnectIdle();
  Received(Start(1));
  const Effects left = Do(Leave{});
  ASSERT_EQ(Sent(left).size(), 1u);
  EXPECT_TRUE(Sent(left)[0].has_goodbye());
  EXPECT_EQ(Sent(left)[0].leader_epoch(), state_.leader_epoch);
  EXPECT_TRUE(All<EndDaemon>(left).empty());
  EXPECT_TRUE(All<KillProcess>(left).empty()) << "peers must not notice before the coordinator";
  const auto ended = All<EndDaemon>(Do(StreamClosed{state_.stream, "ended by the coordinator"}));
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].exit_code, 0);
}

TEST_F(SessionTest, AGoodbyeWithoutAnAnswerOrAStreamEndsTheDaemonAllTheSame) {
  ConnectIdle();
  Do(Leave{});
  EXPECT_EQ(NextDeadline(state_), now_ + std::chrono::seconds(1));
  EXPECT_EQ(All<EndDaemon>(After(std::chrono::seconds(1))).size(), 1u);
  state_ = MakeState(state_.config, now_);
  Do(Tick{});
  EXPECT_EQ(All<EndDaemon>(Do(Leave{})).size(), 1u);
}

TEST_F(SessionTest, ADaemonThatDrainsEndsWithItsLastRank) {
  ConnectIdle();
  Received(Start(1));
  const Effects asked = Do(Drain{"SIGTERM", std::chrono::seconds(110)});
  ASSERT_EQ(Sent(asked).size(), 1u);
  EXPECT_EQ(Sent(asked)[0].draining().reason(), "SIGTERM");
  EXPECT_EQ(Sent(asked)[0].draining().seconds_left(), 108) << "it ends 2 s before its deadline";
  EXPECT_TRUE(All<KillProcess>(asked).empty());
  Received(Stop(1));
  EXPECT_EQ(Sent(FromRank(0, Stopped(1, 0))).size(), 1u) << "one rank is left";
  const std::vector<WorkerMessage> last = Sent(FromRank(1, Stopped(1, 1)));
  ASSERT_EQ(last.size(), 2u);
  EXPECT_TRUE(last[0].has_rank_stopped());
  EXPECT_TRUE(last[1].has_goodbye());
  const auto ended = All<EndDaemon>(Do(StreamClosed{state_.stream, "ended by the coordinator"}));
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].exit_code, 0);
}

TEST_F(SessionTest, ADaemonWithoutRanksOrTimeEndsAtOnceInsteadOfDraining) {
  ConnectIdle();
  const std::vector<WorkerMessage> idle = Sent(Do(Drain{"SIGTERM", std::chrono::seconds(110)}));
  ASSERT_EQ(idle.size(), 1u);
  EXPECT_TRUE(idle[0].has_goodbye());
  state_ = MakeState(state_.config, now_);
  ConnectIdle();
  Received(Start(1));
  const std::vector<WorkerMessage> hurried = Sent(Do(Drain{"SIGTERM", std::chrono::seconds(2)}));
  ASSERT_EQ(hurried.size(), 1u);
  EXPECT_TRUE(hurried[0].has_goodbye());
}

TEST_F(SessionTest, ADaemonThatDrainsEndsShortlyBeforeItsDeadlineWithTheRanksThatAreLeft) {
  ConnectIdle();
  Received(Start(1));
  Do(Drain{"SIGTERM", std::chrono::seconds(4)});
  EXPECT_TRUE(Sent(Do(Drain{"later", std::chrono::seconds(100)})).empty()) << "it ends earlier";
  ASSERT_EQ(Sent(Do(Drain{"sooner", std::chrono::milliseconds(3500)})).size(), 1u);
  EXPECT_EQ(state_.drain->reason, "sooner");
  After(std::chrono::seconds(1));
  EXPECT_FALSE(state_.leave_by);
  EXPECT_EQ(NextDeadline(state_) - now_, std::chrono::milliseconds(500));
  const std::vector<WorkerMessage> sent = Sent(After(std::chrono::milliseconds(500)));
  EXPECT_TRUE(std::any_of(sent.begin(), sent.end(),
                          [](const WorkerMessage& message) { return message.has_goodbye(); }));
}

TEST_F(SessionTest, ADaemonThatDrainsEndsAtOnceWhenItIsAskedTo) {
  ConnectIdle();
  Received(Start(1));
  Do(Drain{"SIGTERM", std::chrono::seconds(110)});
  const std::vector<WorkerMessage> sent = Sent(Do(Leave{}));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent[0].has_goodbye());
}

TEST_F(SessionTest, EachHelloOfADaemonThatDrainsStatesIt) {
  ConnectIdle();
  Received(Start(1));
  Do(Drain{"SIGTERM", std::chrono::seconds(110)});
  Do(StreamClosed{state_.stream, "the coordinator restarts"});
  const auto dials = All<Dial>(After(std::chrono::seconds(1)));
  ASSERT_EQ(dials.size(), 1u);
  EXPECT_EQ(dials[0].hello.hello().draining().seconds_left(), 107);
  EXPECT_EQ(dials[0].hello.hello().draining().reason(), "SIGTERM");
}

TEST_F(SessionTest, ADrainThatBeginsAfterTheHelloIsReportedAfterTheWelcome) {
  ConnectIdle();
  Received(Start(1));
  Do(StreamClosed{state_.stream, "the coordinator restarts"});
  ASSERT_EQ(All<Dial>(After(std::chrono::seconds(1))).size(), 1u);
  EXPECT_TRUE(Sent(Do(Drain{"SIGTERM", std::chrono::seconds(110)})).empty());
  const std::vector<WorkerMessage> sent = Sent(Welcome(2));
  EXPECT_TRUE(std::any_of(sent.begin(), sent.end(), [](const WorkerMessage& message) {
    return message.draining().reason() == "SIGTERM";
  }));
}

TEST_F(SessionTest, AnImageIsAskedOfTheRanksOfItsEpochAndTheirAnswersPassedOn) {
  ConnectIdle();
  Received(Start(2));
  CoordinatorMessage order;
  order.mutable_save_images()->set_job("jobs/a");
  order.mutable_save_images()->set_group_epoch(1);
  order.mutable_save_images()->set_step(10);
  EXPECT_TRUE(All<SendToRank>(Received(order)).empty()) << "of a former epoch";
  order.mutable_save_images()->set_group_epoch(2);
  EXPECT_EQ(All<SendToRank>(Received(order)).size(), 2u);
  WorkerMessage saved;
  saved.mutable_image_saved()->set_job("jobs/a");
  saved.mutable_image_saved()->set_group_epoch(2);
  saved.mutable_image_saved()->set_rank(1);
  saved.mutable_image_saved()->set_path("/images/a/1");
  const auto sent = Sent(FromRank(1, saved));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].image_saved().path(), "/images/a/1");
  CoordinatorMessage erase;
  erase.mutable_delete_images()->add_paths("/images/a/1");
  const auto removed = All<RemoveImages>(Received(erase));
  ASSERT_EQ(removed.size(), 1u);
  EXPECT_EQ(removed[0].request.paths(0), "/images/a/1");
}

TEST_F(SessionTest, AHelloNamesTheImagesThatAreHereUntilTheyAreDeleted) {
  v1::HeldImage former;
  former.set_job("jobs/b");
  former.set_group_epoch(9);
  former.set_path("/images/b/1");
  Config config = state_.config;
  *config.identity.add_images() = former;
  state_ = MakeState(std::move(config), now_);
  const auto images_named = [&](const Effects& effects) {
    std::vector<std::string> images;
    for (const Dial& dial : All<Dial>(effects)) {
      for (const v1::HeldImage& image : dial.hello.hello().images())
        images.push_back(fmt::format("{} {} {}", image.job(), image.group_epoch(), image.path()));
    }
    return images;
  };
  EXPECT_THAT(images_named(Do(Tick{})), testing::ElementsAre("jobs/b 9 /images/b/1"));
  Welcome(1);
  Idle(0);
  Received(Start(2));
  WorkerMessage saved;
  saved.mutable_image_saved()->set_job("jobs/a");
  saved.mutable_image_saved()->set_group_epoch(2);
  saved.mutable_image_saved()->set_rank(0);
  saved.mutable_image_saved()->set_path("/images/a/1");
  FromRank(0, saved);
  CoordinatorMessage erase;
  erase.mutable_delete_images()->add_paths("/images/b/1");
  Received(erase);
  Do(StreamClosed{state_.stream, "test"});
  EXPECT_THAT(images_named(After(std::chrono::seconds(1))),
              testing::ElementsAre("jobs/a 2 /images/a/1"));
}

TEST_F(SessionTest, ACommitIsReadBackAndTheAnswerWaitsForAStream) {
  ConnectIdle();
  CoordinatorMessage message;
  message.mutable_verify_checkpoint()->set_job("jobs/a");
  message.mutable_verify_checkpoint()->set_attempt(3);
  message.mutable_verify_checkpoint()->set_path("/ck/a/3");
  message.mutable_verify_checkpoint()->set_digest("sha256:3");
  const auto reads = All<ReadCheckpointBack>(Received(message));
  ASSERT_EQ(reads.size(), 1u);
  EXPECT_EQ(reads[0].request.path(), "/ck/a/3");
  EXPECT_EQ(reads[0].request.digest(), "sha256:3");

  v1::CheckpointVerified verified;
  verified.set_job("jobs/a");
  verified.set_attempt(3);
  verified.set_ok(true);
  auto sent = Sent(Do(CheckpointReadBack{verified}));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent[0].checkpoint_verified().ok());
  EXPECT_EQ(sent[0].leader_epoch(), 1u);

  Do(StreamClosed{state_.stream, "gone"});
  EXPECT_TRUE(Sent(Do(CheckpointReadBack{verified})).empty());
  After(std::chrono::seconds(1));
  sent = Sent(Welcome(2));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].checkpoint_verified().attempt(), 3);
  EXPECT_TRUE(All<ReadCheckpointBack>(Received(message, 1)).empty()) << "of a former leader";
}

TEST_F(SessionTest, ABurnInIsAnsweredAndStopsWhereRanksAreWanted) {
  ConnectIdle();
  CoordinatorMessage message;
  message.mutable_burn_in()->set_request(7);
  message.mutable_burn_in()->set_seconds(30);
  const auto begun = All<BeginBurnIn>(Received(message));
  ASSERT_EQ(begun.size(), 1u);
  EXPECT_EQ(begun[0].request.seconds(), 30);
  EXPECT_EQ(All<StopBurnIn>(Received(Start(1))).size(), 1u);
  v1::BurnInDone done;
  done.set_request(7);
  const auto sent = Sent(Do(BurnInEnded{done}));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].burn_in_done().request(), 7u);
  EXPECT_TRUE(All<StopBurnIn>(Received(Start(2))).empty()) << "none is in progress";

  Received(message);
  message.mutable_burn_in()->set_request(8);
  Received(message);
  Do(BurnInEnded{done});
  EXPECT_EQ(All<StopBurnIn>(Received(Start(3))).size(), 1u) << "the newer one is";
}

TEST_F(SessionTest, AProcessThatCannotStartIsTriedAgainWithGrowingBoundedWaits) {
  Do(Tick{});
  Welcome(1);
  Duration waited{};
  for (int i = 0; i < 12; ++i) {
    Do(RankExited{0, 1, 0, "", ""});
    waited = state_.devices[0].start_at - now_;
    now_ += waited;
    Do(Tick{});
    ASSERT_EQ(state_.devices[0].process, ProcessState::kStarting);
  }
  EXPECT_EQ(waited, std::chrono::seconds(5));
}

TEST_F(SessionTest, ARankWhoseProcessCannotStartThreeTimesCountsAsCrashed) {
  Do(Tick{});
  Welcome(1);
  Received(Start(1));
  EXPECT_TRUE(Sent(Do(RankExited{0, 1, 0, "", "no memory"})).empty());
  After(std::chrono::seconds(1));
  EXPECT_TRUE(Sent(Do(RankExited{0, 1, 0, "", "no memory"})).empty());
  // The third process does not end by itself.
  After(std::chrono::seconds(1));
  EXPECT_EQ(All<KillProcess>(After(std::chrono::seconds(30))).size(), 2u);
  After(std::chrono::seconds(1));  // dials again, because the lease was over
  Welcome(1);
  const auto sent = Sent(Do(RankExited{0, 0, 9, "", "no memory"}));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_TRUE(sent[0].rank_stopped().crashed());
  EXPECT_EQ(sent[0].rank_stopped().rank(), 0);
  EXPECT_NE(sent[0].rank_stopped().message().find("no memory"), std::string::npos);
  EXPECT_FALSE(state_.devices[0].next.has_value());
  ASSERT_EQ(state_.groups.count("jobs/a"), 1u);
  EXPECT_EQ(state_.groups.at("jobs/a").ranks.count(0), 0u);
}

TEST_F(SessionTest, AFaultOfADeviceFailsItsRankWithTheCauseAndReplacesTheProcess) {
  ConnectIdle();
  Received(Start(1));
  const std::string cause = "Xid 31 (memory page fault) on GPU-a";
  const Effects effects = Do(DeviceFault{1, false, cause});
  ASSERT_EQ(Sent(effects).size(), 1u);
  const v1::RankFailed failed = Sent(effects)[0].rank_failed();
  EXPECT_EQ(failed.job(), "jobs/a");
  EXPECT_EQ(failed.group_epoch(), 1u);
  EXPECT_EQ(failed.rank(), 1);
  EXPECT_EQ(failed.cause(), "DEVICE_FAULT");
  EXPECT_EQ(failed.message(), cause);
  EXPECT_FALSE(failed.secondary());
  ASSERT_EQ(All<KillProcess>(effects).size(), 1u);
  EXPECT_EQ(All<KillProcess>(effects)[0].device, 1);
  EXPECT_EQ(All<KillProcess>(effects)[0].reason, cause);

  const Effects exited = Do(RankExited{1, 0, 9, "step 3: forward", ""});
  ASSERT_EQ(Sent(exited).size(), 1u);
  const v1::RankStopped stopped = Sent(exited)[0].rank_stopped();
  EXPECT_TRUE(stopped.crashed());
  EXPECT_EQ(stopped.cause(), "DEVICE_FAULT");
  EXPECT_EQ(stopped.message(), cause);
  EXPECT_EQ(stopped.last_operation(), "step 3: forward");
  EXPECT_EQ(All<StartProcess>(exited).size(), 1u);
  // Its successor is treated like any other process.
  Idle(1);
  FromRank(0, Stopped(1, 0));
  Idle(0);
  EXPECT_EQ(All<SendToRank>(Received(Start(2))).size(), 2u);
  EXPECT_EQ(Sent(Do(RankExited{1, 3, 0, "", ""}))[0].rank_stopped().cause(), "");
}

TEST_F(SessionTest, TheCauseOfAFaultWithoutAStreamIsReportedOnTheNextOne) {
  ConnectIdle();
  Received(Start(1));
  Do(StreamClosed{state_.stream, "gone"});
  EXPECT_TRUE(Sent(Do(DeviceFault{0, false, "Xid 94"})).empty());
  Do(RankExited{0, 0, 9, "", ""});
  After(std::chrono::seconds(1));
  const auto sent = Sent(Welcome(1));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].rank_stopped().cause(), "DEVICE_FAULT");
  EXPECT_EQ(sent[0].rank_stopped().message(), "Xid 94");
  EXPECT_TRUE(sent[0].rank_stopped().crashed());
}

TEST_F(SessionTest, AProcessThatCannotBeKilledLeavesTheFaultToBeReportedAgain) {
  ConnectIdle();
  Received(Start(1));
  Do(StreamClosed{state_.stream, "gone"});
  Do(DeviceFault{0, true, "Xid 119"});
  const auto dialled = All<Dial>(After(std::chrono::seconds(1)));
  ASSERT_EQ(dialled.size(), 1u);
  EXPECT_EQ(dialled[0].hello.hello().devices(0).condemned(), "Xid 119");
  EXPECT_EQ(dialled[0].hello.hello().devices(1).condemned(), "");
  const auto sent = Sent(Welcome(1));
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].rank_failed().message(), "Xid 119");
}

TEST_F(SessionTest, NothingRunsOnACondemnedDeviceAnyMore) {
  ConnectIdle();
  Received(Start(1));
  const Effects effects = Do(DeviceFault{1, true, "Xid 79"});
  ASSERT_EQ(Sent(effects).size(), 2u);
  EXPECT_EQ(Sent(effects)[0].device_condemned().device(), 1);
  EXPECT_EQ(Sent(effects)[0].device_condemned().reason(), "Xid 79");
  EXPECT_EQ(Sent(effects)[1].rank_failed().message(), "Xid 79");
  const Effects exited = Do(RankExited{1, 0, 9, "", ""});
  EXPECT_TRUE(All<StartProcess>(exited).empty());
  EXPECT_EQ(state_.devices[1].process, ProcessState::kNone);
  EXPECT_LT(NextDeadline(state_), now_ + std::chrono::seconds(10))
      << "the lease's, not the device's";
  EXPECT_GT(NextDeadline(state_), now_);
  EXPECT_TRUE(All<StartProcess>(After(std::chrono::seconds(1))).empty());
  EXPECT_TRUE(Do(DeviceFault{1, true, "Xid 79"}).empty()) << "it is reported once";

  FromRank(0, Stopped(1, 0));
  Idle(0);
  const Effects again = Received(Start(2));
  ASSERT_EQ(Sent(again).size(), 1u);
  EXPECT_EQ(Sent(again)[0].rank_stopped().rank(), 1);
  EXPECT_EQ(Sent(again)[0].rank_stopped().cause(), "DEVICE_FAULT");
  EXPECT_EQ(Sent(again)[0].rank_stopped().message(), "device 1 is condemned: Xid 79");
  EXPECT_EQ(All<SendToRank>(again).size(), 1u);
}

TEST_F(SessionTest, ARankThatWaitsForACondemnedDeviceIsRefused) {
  Do(Tick{});
  Welcome(1);
  Received(Start(1));
  const Effects effects = Do(DeviceFault{0, true, "Xid 79"});
  const auto sent = Sent(effects);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_TRUE(sent[0].has_device_condemned());
  EXPECT_EQ(sent[1].rank_stopped().rank(), 0);
  EXPECT_EQ(sent[1].rank_stopped().cause(), "DEVICE_FAULT");
  EXPECT_EQ(All<KillProcess>(effects).size(), 1u);
}

TEST_F(SessionTest, AnIdleProcessOnAFaultyDeviceIsReplacedAndAStartingOneStays) {
  ConnectIdle();
  const Effects idle = Do(DeviceFault{0, false, "Xid 13"});
  EXPECT_EQ(All<KillProcess>(idle).size(), 1u);
  EXPECT_TRUE(Sent(idle).empty());
  Do(RankExited{0, 0, 9, "", ""});
  ASSERT_EQ(state_.devices[0].process, ProcessState::kStarting);
  EXPECT_TRUE(Do(DeviceFault{0, false, "Xid 13"}).empty());
}

}  // namespace
}  // namespace troupe::session
