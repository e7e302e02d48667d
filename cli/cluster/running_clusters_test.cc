#include "cli/cluster/running_clusters.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/temporary_directory.h"
#include "base/text_file.h"
#include "cli/cluster/cluster_file.h"
#include "cli/cluster/pretended_process_test.h"
#include "cli/cluster/process.h"
#include "cli/cluster/process_folder.h"

namespace troupe {
namespace {

bool Runs(const std::string& folder) {
  const std::vector<std::string> running = RunningClusters();
  return std::find(running.begin(), running.end(), folder) != running.end();
}

// A cluster of a supervisor only, which holds the lock of its folder, and names the folder by
// `stated`.
class PretendedCluster {
 public:
  PretendedCluster(const std::string& folder, const std::string& stated)
      : supervisor_(folder, {"/pretended/troupe", "supervise", "--data-dir", stated}),
        lock_(folder) {
    lock_.State(LockTextOf(FindProcess(supervisor_.pid()).value_or(ProcessId{})));
  }
  explicit PretendedCluster(const std::string& folder) : PretendedCluster(folder, folder) {}

  bool was_started() const { return supervisor_.was_started(); }
  void End() { supervisor_.End(); }

 private:
  PretendedProcess supervisor_;
  HeldLock lock_;
};

// Waits for the shell to run under its arguments.
void Await(const std::string& folder) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!Runs(folder) && std::chrono::steady_clock::now() < end) sched_yield();
}

// Waits for the shell to run under arguments that name `folder`.
void AwaitArguments(const PretendedProcess& process,
                    std::optional<std::string> (*folder_of)(std::string_view),
                    const std::string& folder) {
  const std::string path = fmt::format("/proc/{}/cmdline", process.pid());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < end) {
    const StatusOr<std::string> command_line = ReadTextFile(path);
    if (command_line.ok() && folder_of(*command_line) == folder) return;
    sched_yield();
  }
  ADD_FAILURE() << path << " does not name " << folder;
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

TEST(RunningClustersTest, AFolderMayBeRelativeToTheWorkingDirectoryOfItsSupervisor) {
  const TemporaryDirectory folder;
  const std::string absolute = std::filesystem::canonical(folder.path()) / "cluster";
  std::filesystem::create_directory(absolute);
  PretendedProcess supervisor(folder.path(),
                              {"/pretended/troupe", "supervise", "--data-dir", "cluster/"});
  ASSERT_TRUE(supervisor.was_started());
  HeldLock lock(absolute);
  lock.State(LockTextOf(*FindProcess(supervisor.pid())));
  Await(absolute);
  EXPECT_TRUE(Runs(absolute));
}

TEST(RunningClustersTest, ASlashAtTheEndMakesNoSecondCluster) {
  const TemporaryDirectory folder;
  PretendedCluster supervisor(folder.path(), folder.path() + "/");
  ASSERT_TRUE(supervisor.was_started());
  PretendedProcess coordinator(folder.path(), {"/pretended/troupe-coordinator", "serve",
                                               "--data-dir", folder.Child("coordinator")});
  ASSERT_TRUE(coordinator.was_started());
  const ClusterFile cluster{.coordinator_address = "127.0.0.1:7",
                            .coordinator_metrics = "http://127.0.0.1:8/metrics",
                            .coordinator = *FindProcess(coordinator.pid())};
  ASSERT_TRUE(WriteClusterFile(folder.path(), cluster).ok());
  AwaitArguments(coordinator, CoordinatedFolder, folder.path());
  Await(folder.path());
  const std::vector<std::string> running = RunningClusters();
  EXPECT_EQ(std::ranges::count(running, folder.path()), 1);
  EXPECT_EQ(std::ranges::count(running, folder.path() + "/"), 0);
}

TEST(RunningClustersTest, ASupervisorCountsWhileItHoldsTheLockOfItsFolder) {
  const TemporaryDirectory home;
  const std::string folder = home.Child("cluster");
  std::filesystem::create_directory(folder);
  PretendedSupervisor supervisor(folder);
  ASSERT_TRUE(supervisor.was_started());
  const ProcessId process = *FindProcess(supervisor.pid());
  AwaitArguments(supervisor, SupervisedFolder, folder);
  // That of a container, whose folder of this name is another one.
  EXPECT_FALSE(Runs(folder));
  {
    HeldLock lock(folder);
    lock.State(LockTextOf(*FindProcess(getpid())));
    EXPECT_FALSE(Runs(folder));
    lock.State(LockTextOf(process));
    EXPECT_TRUE(Runs(folder));
    std::filesystem::rename(folder, home.Child("elsewhere"));
    EXPECT_FALSE(Runs(folder));
    std::filesystem::rename(home.Child("elsewhere"), folder);
    EXPECT_TRUE(Runs(folder));
  }
  EXPECT_FALSE(Runs(folder)) << "nobody holds the lock";
}

// Waits for a tick, the resolution of start times.
void AwaitNextTick() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  while (std::chrono::steady_clock::now() < end) sched_yield();
}

TEST(RunningClustersTest, ACoordinatorThatWasStartedAgainMakesItsClusterNoNewer) {
  const TemporaryDirectory older, newer;
  PretendedCluster first(older.path());
  ASSERT_TRUE(first.was_started());
  Await(older.path());
  AwaitNextTick();
  PretendedCluster second(newer.path());
  ASSERT_TRUE(second.was_started());
  Await(newer.path());
  AwaitNextTick();
  PretendedProcess coordinator(older.path(), {"/pretended/troupe-coordinator", "serve",
                                              "--data-dir", older.Child("coordinator")});
  ASSERT_TRUE(coordinator.was_started());
  const ClusterFile cluster{.coordinator_address = "127.0.0.1:7",
                            .coordinator_metrics = "http://127.0.0.1:8/metrics",
                            .coordinator = *FindProcess(coordinator.pid())};
  ASSERT_TRUE(WriteClusterFile(older.path(), cluster).ok());
  AwaitArguments(coordinator, CoordinatedFolder, older.path());
  const std::vector<std::string> running = RunningClusters();
  EXPECT_LT(std::ranges::find(running, newer.path()), std::ranges::find(running, older.path()));
  EXPECT_NE(std::ranges::find(running, older.path()), running.end());
}

TEST(RunningClustersTest, TheNewestIsFirstAndAnEndedOneIsAbsent) {
  const TemporaryDirectory older, newer;
  PretendedCluster first(older.path());
  ASSERT_TRUE(first.was_started());
  Await(older.path());
  EXPECT_TRUE(Runs(older.path()));
  AwaitNextTick();
  PretendedCluster second(newer.path());
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
