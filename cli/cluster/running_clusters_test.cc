#include "cli/cluster/running_clusters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/temporary_directory.h"
#include "cli/cluster/cluster_file.h"
#include "cli/cluster/pretended_process_test.h"
#include "cli/cluster/process.h"

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
  EXPECT_EQ(SupervisedFolder(
                CommandLineOf({"troupe", "supervise", "--data-dir", "/a", "--allow-failpoints"})),
            "/a");
  for (const std::string& other : {std::string(), std::string("troupe supervise --data-dir /a"),
                                   CommandLineOf({"vim", "supervise", "--data-dir", "/a"}),
                                   CommandLineOf({"/bin/troupe", "up", "--data-dir", "/a"}),
                                   CommandLineOf({"troupe", "supervise", "--data-dir", "/a", "b"}),
                                   CommandLineOf({"/bin/troupe", "supervise", "--data-dir"})}) {
    EXPECT_EQ(SupervisedFolder(other), std::nullopt) << other;
  }
}

TEST(RunningClustersTest, ACoordinatorOfALocalClusterIsKnownByItsDataDirectory) {
  EXPECT_EQ(
      CoordinatedFolder(CommandLineOf({"/bin/troupe-coordinator", "--listen", "127.0.0.1:7",
                                       "--data-dir", "/a b/coordinator", "--log-files", "4"})),
      "/a b");
  for (const std::string& other :
       {std::string(), CommandLineOf({"troupe-coordinator", "--data-dir", "/a"}),
        CommandLineOf({"troupe-coordinator", "--data-dir"}),
        CommandLineOf({"vim", "--data-dir", "/a/coordinator"})}) {
    EXPECT_EQ(CoordinatedFolder(other), std::nullopt) << other;
  }
}

bool Runs(const std::string& folder) {
  const std::vector<std::string> running = RunningClusters();
  return std::find(running.begin(), running.end(), folder) != running.end();
}

// Waits for the shell to run under its arguments.
void Await(const std::string& folder) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!Runs(folder) && std::chrono::steady_clock::now() < end) sched_yield();
}

TEST(RunningClustersTest, ACoordinatorThatOutlivedItsSupervisorRepresentsItsCluster) {
  const TemporaryDirectory folder;
  PretendedProcess coordinator(folder.path(), {"/pretended/troupe-coordinator", "serve",
                                               "--data-dir", folder.Child("coordinator")});
  ASSERT_TRUE(coordinator.was_started());
  ClusterFile cluster{.coordinator_address = "127.0.0.1:7",
                      .coordinator_metrics = "http://127.0.0.1:8/metrics",
                      .coordinator = *FindProcess(coordinator.pid())};
  ASSERT_TRUE(WriteClusterFile(folder.path(), cluster).ok());
  Await(folder.path());
  EXPECT_TRUE(Runs(folder.path()));
  // Another coordinator, which no `troupe up` started.
  ++cluster.coordinator.start_ticks;
  ASSERT_TRUE(WriteClusterFile(folder.path(), cluster).ok());
  EXPECT_FALSE(Runs(folder.path()));
}

TEST(RunningClustersTest, TheNewestIsFirstAndAnEndedOneIsAbsent) {
  const TemporaryDirectory older, newer;
  PretendedSupervisor first(older.path());
  ASSERT_TRUE(first.was_started());
  Await(older.path());
  EXPECT_TRUE(Runs(older.path()));
  // Start times have the resolution of a tick.
  const auto next_ticks = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  while (std::chrono::steady_clock::now() < next_ticks) sched_yield();
  PretendedSupervisor second(newer.path());
  ASSERT_TRUE(second.was_started());
  Await(newer.path());
  const std::vector<std::string> running = RunningClusters();
  const auto at = [&](const std::string& folder) {
    return std::find(running.begin(), running.end(), folder);
  };
  EXPECT_NE(at(older.path()), running.end());
  EXPECT_LT(at(newer.path()), at(older.path()));
  first.End();
  second.End();
  EXPECT_FALSE(Runs(older.path()));
  EXPECT_FALSE(Runs(newer.path()));
}

}  // namespace
}  // namespace troupe
