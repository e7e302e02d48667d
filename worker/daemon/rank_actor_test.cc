// Tests real rank processes behind their actor.
#include "worker/daemon/rank_actor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "base/temporary_directory.h"
#include "worker/daemon/testing/session_probe.h"

namespace troupe {
namespace {

class RankActorTest : public ::testing::Test {
 protected:
  ~RankActorTest() override {
    probe_.End();
    ends_ = true;
    descriptors_.Wake();
    poller_.join();
  }

  // Starts a rank process of device 3 and waits until it is idle.
  void StartIdle() {
    auto child = RankChild::Start(TROUPE_WORKER_BINARY);
    ASSERT_TRUE(child.ok()) << child.status();
    pid_ = (*child)->pid();
    rank_ = probe_.Own(MakeRankActor({.device = 3,
                                      .child = *std::move(child),
                                      .descriptors = &descriptors_,
                                      .gate = probe_.gate()}));
    EXPECT_TRUE(Next().has_idle());
  }
  v1::RankReport Next() {
    session::RankReported reported = probe_.log().NextOf<session::RankReported>();
    EXPECT_EQ(reported.device, 3);
    return std::move(reported.report);
  }

  std::atomic<bool> ends_ = false;
  DescriptorWatch descriptors_;
  std::thread poller_{[this] {
    while (!ends_) descriptors_.Wait(std::chrono::hours(1));
  }};
  SessionProbe probe_;
  pid_t pid_ = 0;
  Address rank_;
};

TEST_F(RankActorTest, PassesCommandsAndReports) {
  StartIdle();
  const TemporaryDirectory folder;
  v1::RankCommand command;
  command.mutable_begin()->mutable_start()->set_job("jobs/a");
  command.mutable_begin()->mutable_start()->set_group_epoch(3);
  command.mutable_begin()->set_rank(5);  // its plan has no ranks
  command.mutable_begin()->set_log_path(folder.Child("a/rank-5.log"));
  ASSERT_TRUE(probe_.Send(rank_, CommandRank{command}).ok());
  EXPECT_EQ(Next().worker().rank_failed().group_epoch(), 3u);
}

TEST_F(RankActorTest, AProcessThatEndsIsReportedThenTheActorEnds) {
  StartIdle();
  ASSERT_TRUE(probe_.Send(rank_, KillRank{"test"}).ok());
  const auto exited = probe_.log().NextOf<session::RankExited>();
  EXPECT_EQ(exited.device, 3);
  EXPECT_EQ(exited.signal, SIGKILL);
  EXPECT_EQ(exited.last_operation, "idle");
  EXPECT_TRUE(probe_.log().NextEnd().ok());
}

TEST_F(RankActorTest, TheProcessEndsWithItsActor) {
  StartIdle();
  probe_.gate()->Stop(rank_, Aborted("test"));
  EXPECT_EQ(probe_.log().NextEnd().code(), StatusCode::kAborted);
  EXPECT_EQ(kill(pid_, 0), -1);
}

TEST_F(RankActorTest, NothingIsLostWhileTheSessionIsBusy) {
  StartIdle();
  probe_.Hold();
  kill(pid_, SIGSEGV);
  while (kill(pid_, 0) == 0) std::this_thread::yield();  // until the actor has reaped it
  probe_.Release();
  EXPECT_EQ(probe_.log().NextOf<session::RankExited>().signal, SIGSEGV);
  EXPECT_TRUE(probe_.log().NextEnd().ok());
}

}  // namespace
}  // namespace troupe
