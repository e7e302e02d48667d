#include "cli/cluster/supervisor_lock.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/temporary_directory.h"
#include "cli/cluster/pretended_process_test.h"
#include "cli/cluster/process.h"

namespace troupe {
namespace {

// Waits until the supervisor is found: until its shell runs under its arguments.
StatusOr<ProcessId> AwaitSupervisor(const std::string& folder) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!FindSupervisor(folder).ok() && std::chrono::steady_clock::now() < end) sched_yield();
  return FindSupervisor(folder);
}

TEST(SupervisorLockTest, ASecondSupervisorIsRefusedUntilTheFirstEnds) {
  const TemporaryDirectory folder;
  EXPECT_FALSE(SupervisorLives(folder.path()));
  {
    const auto lock = SupervisorLock::Acquire(folder.path());
    ASSERT_TRUE(lock.ok()) << lock.status();
    EXPECT_TRUE(SupervisorLives(folder.path()));
    EXPECT_EQ(SupervisorLock::Acquire(folder.path()).status().code(),
              StatusCode::kFailedPrecondition);
  }
  EXPECT_FALSE(SupervisorLives(folder.path()));
}

TEST(SupervisorLockTest, ItStatesItsProcessAlsoAfterALongerText) {
  const TemporaryDirectory folder;
  std::ofstream(SupervisorLockPath(folder.path())) << std::string(100, '9');
  const auto lock = SupervisorLock::Acquire(folder.path());
  ASSERT_TRUE(lock.ok()) << lock.status();
  std::ifstream file(SupervisorLockPath(folder.path()));
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(file)), {}),
            LockTextOf(*FindProcess(getpid())));
}

TEST(SupervisorLockTest, TheSupervisorIsFoundByTheLockOfItsFolder) {
  const TemporaryDirectory folder, copy;
  PretendedSupervisor supervisor(folder.path());
  ASSERT_TRUE(supervisor.was_started());
  const auto process = FindProcess(supervisor.pid());
  ASSERT_TRUE(process.has_value());
  HeldLock lock(folder.path());
  lock.State(LockTextOf(*process));
  const auto found = AwaitSupervisor(folder.path());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, *process);
  EXPECT_TRUE(IsSupervisorOf(folder.path(), *process));
  // Nobody holds the lock of a copy of the folder.
  std::filesystem::copy(SupervisorLockPath(folder.path()), SupervisorLockPath(copy.path()));
  EXPECT_EQ(FindSupervisor(copy.path()).status().code(), StatusCode::kNotFound);
  // Another folder's supervisor is none of this one, whatever the file states.
  std::filesystem::remove(SupervisorLockPath(copy.path()));
  HeldLock other(copy.path());
  other.State(LockTextOf(*process));
  EXPECT_EQ(FindSupervisor(copy.path()).status().code(), StatusCode::kFailedPrecondition);
}

TEST(SupervisorLockTest, AProcessThatIsNoSupervisorIsNotFound) {
  const TemporaryDirectory folder;
  HeldLock lock(folder.path());
  const ProcessId self = *FindProcess(getpid());
  PretendedSupervisor supervisor(folder.path());
  ASSERT_TRUE(supervisor.was_started());
  ProcessId recycled = *FindProcess(supervisor.pid());
  lock.State(LockTextOf(recycled));
  ASSERT_TRUE(AwaitSupervisor(folder.path()).ok());
  ++recycled.start_ticks;
  for (const std::string& text :
       {std::string(), std::string("nonsense\n"), fmt::format("{}\n", supervisor.pid()),
        LockTextOf(self), LockTextOf(recycled), LockTextOf({.pid = -1, .start_ticks = 1}),
        LockTextOf({.pid = supervisor.pid()}), LockTextOf(recycled) + "more"}) {
    lock.State(text);
    EXPECT_EQ(FindSupervisor(folder.path()).status().code(), StatusCode::kFailedPrecondition)
        << text;
    for (const ProcessId& process : {self, recycled, *FindProcess(supervisor.pid())})
      EXPECT_FALSE(IsSupervisorOf(folder.path(), process)) << text;
  }
}

}  // namespace
}  // namespace troupe
