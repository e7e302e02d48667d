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

// A shell that runs under a supervisor's arguments: it reads a script named `supervise`.
class PretendedSupervisor {
 public:
  explicit PretendedSupervisor(const std::string& folder) {
    std::ofstream(folder + "/supervise") << "while :; do sleep 60; done\n";
    pid_ = fork();
    if (pid_ != 0) return;
    setsid();
    // Whoever reads this test's output does not wait for the shell.
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (dup2(null, STDOUT_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0 &&
        chdir(folder.c_str()) == 0) {
      execl("/bin/sh", "/pretended/troupe", "supervise", "--data-dir", folder.c_str(), nullptr);
    }
    _exit(127);
  }
  ~PretendedSupervisor() { End(); }

  bool was_started() const { return pid_ > 0; }
  void End() {
    if (pid_ <= 0) return;
    kill(-pid_, SIGKILL);
    EXPECT_EQ(waitpid(pid_, nullptr, 0), pid_);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
};

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
  PretendedSupervisor first(older.path());
  ASSERT_TRUE(first.was_started());
  await(older.path());
  EXPECT_TRUE(Runs(older.path()));
  // Start times have the resolution of a tick.
  const auto next_ticks = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  while (std::chrono::steady_clock::now() < next_ticks) sched_yield();
  PretendedSupervisor second(newer.path());
  ASSERT_TRUE(second.was_started());
  await(newer.path());
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
