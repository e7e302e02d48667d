// Processes with the arguments of those of a local cluster, for tests of how they are found.
#ifndef TROUPE_CLI_CLUSTER_PRETENDED_PROCESS_TEST_H_
#define TROUPE_CLI_CLUSTER_PRETENDED_PROCESS_TEST_H_

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "cli/cluster/process_id.h"
#include "cli/cluster/supervisor_lock.h"

namespace troupe {

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

inline std::string LockTextOf(const ProcessId& process) {
  return fmt::format("{} {}\n", process.pid, process.start_ticks);
}

// Holds the lock of the supervisor of a folder, whose file states what the test writes.
class HeldLock {
 public:
  explicit HeldLock(const std::string& folder) : path_(SupervisorLockPath(folder)) {
    State("");
    descriptor_ = open(path_.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_EQ(flock(descriptor_, LOCK_EX | LOCK_NB), 0);
  }
  ~HeldLock() { close(descriptor_); }

  void State(const std::string& text) { std::ofstream(path_) << text; }

 private:
  const std::string path_;
  int descriptor_ = -1;
};

}  // namespace troupe

#endif  // TROUPE_CLI_CLUSTER_PRETENDED_PROCESS_TEST_H_
