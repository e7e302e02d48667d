// Tests real rank processes, started as the daemon starts them.
#include "worker/daemon/rank_child.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <deque>
#include <memory>
#include <optional>

#include "base/temporary_directory.h"

namespace troupe {
namespace {

constexpr int kChildLimitMilliseconds = 20000;

std::unique_ptr<RankChild> StartIdle() {
  auto child = RankChild::Start(TROUPE_WORKER_BINARY);
  EXPECT_TRUE(child.ok()) << child.status();
  return *std::move(child);
}

// Returns the next report, or nothing if the process ends first.
std::optional<v1::RankReport> NextReport(RankChild& child) {
  static std::deque<v1::RankReport> waiting;
  while (waiting.empty()) {
    pollfd polled[2] = {{child.socket(), POLLIN, 0}, {child.end_descriptor(), POLLIN, 0}};
    if (poll(polled, 2, kChildLimitMilliseconds) <= 0) return std::nullopt;
    waiting = child.Read();
    if (waiting.empty() && polled[1].revents != 0) return std::nullopt;
  }
  v1::RankReport report = std::move(waiting.front());
  waiting.pop_front();
  return report;
}

bool HasEnded(const RankChild& child) {
  pollfd polled{child.end_descriptor(), POLLIN, 0};
  return poll(&polled, 1, 0) != 0;
}

ChildEnd EndOf(RankChild& child) {
  pollfd polled{child.end_descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&polled, 1, kChildLimitMilliseconds), 1);
  return child.Reap();
}

TEST(RankChild, IsKilledWhenMoreCommandsWaitForItThanOneMayHave) {
  const auto child = StartIdle();
  ASSERT_TRUE(NextReport(*child));
  ASSERT_EQ(kill(child->pid(), SIGSTOP), 0);
  v1::RankCommand command;
  command.mutable_begin()->set_log_path(std::string(size_t{40} << 20, 'x'));
  child->Send(command);
  EXPECT_FALSE(HasEnded(*child));
  child->Send(command);
  EXPECT_EQ(EndOf(*child).signal, SIGKILL);
}

TEST(RankChild, ReportsThatItIsIdleAndWhatDoesNotWorkInAJob) {
  const TemporaryDirectory folder;
  const auto child = StartIdle();
  std::optional<v1::RankReport> report = NextReport(*child);
  ASSERT_TRUE(report && report->has_idle());
  EXPECT_GT(child->MemoryBytes(), 0);

  v1::RankCommand command;
  command.mutable_begin()->mutable_start()->set_job("jobs/a");
  command.mutable_begin()->mutable_start()->set_group_epoch(3);
  command.mutable_begin()->set_rank(5);  // its plan has no ranks
  command.mutable_begin()->set_log_path(folder.Child("a/rank-5.log"));
  child->Send(command);
  report = NextReport(*child);
  ASSERT_TRUE(report && report->worker().has_rank_failed());
  EXPECT_EQ(report->worker().rank_failed().group_epoch(), 3u);
  EXPECT_FALSE(report->worker().rank_failed().secondary());

  v1::RankCommand stop;
  stop.mutable_coordinator()->mutable_stop_ranks()->set_job("jobs/a");
  stop.mutable_coordinator()->mutable_stop_ranks()->set_group_epoch(3);
  child->Send(stop);
  report = NextReport(*child);
  ASSERT_TRUE(report && report->worker().has_rank_stopped());
  report = NextReport(*child);
  ASSERT_TRUE(report && report->has_idle()) << "the process is not warm for the next job";
}

TEST(RankChild, ItsDeathIsReportedWithSignalAndLastOperation) {
  const auto child = StartIdle();
  ASSERT_TRUE(NextReport(*child));
  kill(child->pid(), SIGSEGV);
  const ChildEnd end = EndOf(*child);
  EXPECT_EQ(end.signal, SIGSEGV);
  EXPECT_EQ(child->LastOperation(), "idle");
}

TEST(RankChild, SignalsToTheProcessGroupOfItsDaemonDoNotEndIt) {
  const auto child = StartIdle();
  kill(child->pid(), SIGTERM);  // the program has hardly begun
  ASSERT_TRUE(NextReport(*child));
  kill(child->pid(), SIGTERM);
  kill(child->pid(), SIGINT);
  const TemporaryDirectory folder;
  v1::RankCommand command;
  command.mutable_begin()->mutable_start()->set_job("jobs/a");
  command.mutable_begin()->set_rank(5);  // its plan has no ranks
  command.mutable_begin()->set_log_path(folder.Child("a/rank-5.log"));
  child->Send(command);
  const std::optional<v1::RankReport> report = NextReport(*child);
  EXPECT_TRUE(report && report->worker().has_rank_failed()) << "it serves no commands";
  EXPECT_FALSE(HasEnded(*child));
  child->Kill();
  EXPECT_EQ(EndOf(*child).signal, SIGKILL);
}

TEST(RankChild, IsKilledWithItsOwner) {
  auto child = StartIdle();
  ASSERT_TRUE(NextReport(*child));
  const pid_t pid = child->pid();
  child.reset();
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST(RankChild, EndsByItselfWhenItsSocketDoes) {
  const auto child = StartIdle();
  ASSERT_TRUE(NextReport(*child));
  // The kernel closes the socket like this when the daemon is gone.
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  ASSERT_GE(dup2(nothing, child->socket()), 0);
  close(nothing);
  const ChildEnd end = EndOf(*child);
  EXPECT_EQ(end.exit_code, 0);
  EXPECT_EQ(end.signal, 0);
}

TEST(RankChild, AProgramThatIsNotThereIsAnError) {
  const auto child = RankChild::Start("/no/such/program");
  ASSERT_FALSE(child.ok());
  EXPECT_THAT(std::string(Message(child.status())), ::testing::HasSubstr("/no/such/program"));
}

}  // namespace
}  // namespace troupe
