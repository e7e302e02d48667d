#include "cli/cluster/running_clusters.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <initializer_list>

#include "base/temporary_directory.h"

namespace troupe {
namespace {

std::string CommandLineOf(std::initializer_list<std::string> arguments) {
  std::string text;
  for (const std::string& argument : arguments) text += argument + '\0';
  return text;
}

TEST(RunningClustersTest, ASupervisorIsKnownByItsArguments) {
  EXPECT_EQ(SupervisedFolder(CommandLineOf({"/bin/troupe", "supervise", "--data-dir", "/a b"})),
            "/a b");
  EXPECT_EQ(SupervisedFolder(CommandLineOf({"troupe", "supervise", "--data-dir", "/a"})), "/a");
  for (const std::string& other : {std::string(), std::string("troupe supervise --data-dir /a"),
                                   CommandLineOf({"vim", "supervise", "--data-dir", "/a"}),
                                   CommandLineOf({"/bin/troupe", "up", "--data-dir", "/a"}),
                                   CommandLineOf({"/bin/troupe", "supervise", "--data-dir"})}) {
    EXPECT_EQ(SupervisedFolder(other), std::nullopt) << other;
  }
}

// Runs a shell under a supervisor's arguments: it reads a script named `supervise`.
pid_t StartPretendedSupervisor(const std::string& folder) {
  std::ofstream(folder + "/supervise") << "while :; do sleep 60; done\n";
  const pid_t pid = fork();
  if (pid == 0) {
    setsid();
    if (chdir(folder.c_str()) == 0) {
      execl("/bin/sh", "/pretended/troupe", "supervise", "--data-dir", folder.c_str(), nullptr);
    }
    _exit(127);
  }
  return pid;
}

bool Runs(const std::string& folder) {
  const std::vector<std::string> running = RunningClusters();
  return std::find(running.begin(), running.end(), folder) != running.end();
}

TEST(RunningClustersTest, TheNewestIsFirstAndAnEndedOneIsAbsent) {
  const TemporaryDirectory older, newer;
  const auto await = [](const std::string& folder) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!Runs(folder) && std::chrono::steady_clock::now() < end) sched_yield();
  };
  const pid_t first = StartPretendedSupervisor(older.path());
  ASSERT_GT(first, 0);
  await(older.path());
  EXPECT_TRUE(Runs(older.path()));
  // Start times have the resolution of a tick.
  const auto next_ticks = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  while (std::chrono::steady_clock::now() < next_ticks) sched_yield();
  const pid_t second = StartPretendedSupervisor(newer.path());
  ASSERT_GT(second, 0);
  await(newer.path());
  const std::vector<std::string> running = RunningClusters();
  const auto at = [&](const std::string& folder) {
    return std::find(running.begin(), running.end(), folder);
  };
  EXPECT_NE(at(older.path()), running.end());
  EXPECT_LT(at(newer.path()), at(older.path()));
  for (const pid_t pid : {first, second}) {
    kill(-pid, SIGKILL);
    EXPECT_EQ(waitpid(pid, nullptr, 0), pid);
  }
  EXPECT_FALSE(Runs(older.path()));
  EXPECT_FALSE(Runs(newer.path()));
}

}  // namespace
}  // namespace troupe
