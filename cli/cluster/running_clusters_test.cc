#include "cli/cluster/running_clusters.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/temporary_directory.h"
#include "cli/cluster/cluster_file.h"
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
  for (const std::string& other : {std::string(), std::string("troupe supervise --data-dir /a"),
                                   CommandLineOf({"vim", "supervise", "--data-dir", "/a"}),
                                   CommandLineOf({"/bin/troupe", "up", "--data-dir", "/a"}),
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

// A shell that runs under `arguments`, those of a process of a local cluster: it reads a script in
// `folder` that has the name of the first argument after the binary. The script stops the shell and
// starts no process, which for a moment would have the same arguments.
class PretendedProcess {
 public:
  PretendedProcess(const std::string& folder, std::vector<std::string> arguments) {
    std::ofstream(folder + "/" + arguments[1]) << "kill -STOP $$\n";
    pid_ = fork();
    if (pid_ != 0) return;
    setsid();
    // Whoever reads this test's output does not wait for the shell.
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (dup2(null, STDOUT_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0 &&
        chdir(folder.c_str()) == 0) {
      std::vector<char*> words;
      for (std::string& argument : arguments) words.push_back(argument.data());
      words.push_back(nullptr);
      execv("/bin/sh", words.data());
    }
    _exit(127);
  }
  ~PretendedProcess() { End(); }

  bool was_started() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  void End() {
    if (pid_ <= 0) return;
    kill(-pid_, SIGKILL);
    EXPECT_EQ(waitpid(pid_, nullptr, 0), pid_);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

class PretendedSupervisor : public PretendedProcess {
 public:
  explicit PretendedSupervisor(const std::string& folder)
      : PretendedProcess(folder, {"/pretended/troupe", "supervise", "--data-dir", folder}) {}
};

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
