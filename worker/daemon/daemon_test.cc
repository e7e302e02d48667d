// Tests the daemon with devices whose health is watched through a library without a GPU.
#include "worker/daemon/daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/temporary_directory.h"
#include "worker/devices/testing/fake_nvml_fixture.h"

namespace troupe {
namespace {

// The living child processes of this process, whichever of its threads started them.
std::set<pid_t> Children() {
  std::set<pid_t> children;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream list(task.path() / "children");
    for (pid_t child = 0; list >> child;) children.insert(child);
  }
  return children;
}

// Blocks the signals that a daemon reads from its descriptor, and drops those that it left.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() {
    const timespec no_wait{};
    while (sigtimedwait(&signals_, nullptr, &no_wait) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t signals_;
  sigset_t before_;
};

// Sends SIGTERM to `thread`, which blocks it. Threads that libraries have left may not block it.
void SendSigterm(pthread_t thread) {
  // NOLINTNEXTLINE(bugprone-bad-signal-to-kill-thread): it is blocked, and read from a descriptor.
  pthread_kill(thread, SIGTERM);
}

using DaemonTest = FakeNvmlTest;

TEST_F(DaemonTest, AnXidReplacesTheProcessOnItsDeviceOrEndsItForGood) {
  const BlockedSignals signals;
  const TemporaryDirectory folder;
  // No coordinator is there, and none is needed.
  DaemonOptions options{
      .coordinator = "127.0.0.1:1", .executable = TROUPE_WORKER_BINARY, .nvml = TROUPE_FAKE_NVML};
  options.session.log_directory = folder.path();
  options.session.identity.set_name("worker-0");
  for (const char* id : {kFirstGpu, kSecondGpu}) {
    v1::Device& device = *options.session.identity.add_devices();
    device.set_index(options.session.identity.devices_size() - 1);
    device.set_id(id);
  }
  const pthread_t main_thread = pthread_self();
  std::thread hand([this, main_thread] {
    // Checks the condition whenever the daemon calls the library.
    const auto eventually = [this](const std::function<bool()>& holds) {
      return WaitFor([&](const FakeNvml&) { return holds(); });
    };
    EXPECT_TRUE(eventually([] { return Children().size() == 2; }));
    const std::set<pid_t> first = Children();
    if (first.size() == 2) {
      // The second device is condemned: its process is killed and none replaces it.
      Happen(kSecondGpu, 79);
      EXPECT_TRUE(eventually([] { return Children().size() == 1; }));
      const std::set<pid_t> left = Children();
      EXPECT_TRUE(!left.empty() && first.contains(*left.begin()));
      // An error of a process on the first device is the process's own fault: another takes its
      // place. A process that has not reported that it is idle is not killed; then the second
      // attempt counts.
      bool replaced = false;
      for (int attempt = 0; attempt < 2 && !replaced; ++attempt) {
        Happen(kFirstGpu, 31);
        replaced = eventually([&] {
          const std::set<pid_t> now = Children();
          return now.size() == 1 && !first.contains(*now.begin());
        });
      }
      EXPECT_TRUE(replaced);
    }
    SendSigterm(main_thread);
  });
  const StatusOr<int> code = RunDaemon(std::move(options));
  hand.join();
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0);
  EXPECT_TRUE(Children().empty());
  Change([](FakeNvml& fake) { EXPECT_EQ(fake.starts, 0) << "the watch has ended"; });
}

TEST_F(DaemonTest, SigtermEndsADaemonWithoutRanksAtOnceAlthoughItMayDrain) {
  const BlockedSignals signals;
  const TemporaryDirectory folder;
  DaemonOptions options{.coordinator = "127.0.0.1:1",
                        .executable = TROUPE_WORKER_BINARY,
                        .drain_limit = std::chrono::minutes(1)};
  options.session.log_directory = folder.path();
  options.session.identity.set_name("worker-0");
  options.session.identity.add_devices();
  SendSigterm(pthread_self());  // it is pending until the daemon reads it
  const auto begin = std::chrono::steady_clock::now();
  const StatusOr<int> code = RunDaemon(std::move(options));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0);
}

}  // namespace
}  // namespace troupe
