#include "cli/output/colour.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "base/worker_state.h"

namespace troupe {
namespace {

TEST(ColourTest, AStateIsBetweenTheSequencesOfItsColour) {
  EXPECT_EQ(InColour(ColourOf(v1::JOB_STATE_FAILED), "FAILED"), "\033[31mFAILED\033[0m");
  EXPECT_EQ(InColour(Colour::kNone, "FAILED"), "FAILED");
}

TEST(ColourTest, EveryStateOfAJobHasOne) {
  for (int state = v1::JOB_STATE_UNSPECIFIED + 1; state <= v1::JobState_MAX; ++state) {
    EXPECT_NE(ColourOf(static_cast<v1::JobState>(state)), Colour::kNone) << state;
  }
  v1::Job job;
  job.set_state(v1::JOB_STATE_CHECKPOINTING);
  EXPECT_EQ(ColourOf(job), Colour::kGreen);
  job.set_moving("leaves worker-1");
  EXPECT_EQ(ColourOf(job), Colour::kYellow);
}

TEST(ColourTest, EventsWithTheNameOfAStateHaveItsColour) {
  EXPECT_EQ(ColourOfStateWord("RECOVERING"), Colour::kYellow);
  EXPECT_EQ(ColourOfStateWord("CHECKPOINT_COMMITTED"), Colour::kNone);
  EXPECT_EQ(ColourOfStateWord("UNSPECIFIED"), Colour::kNone);
}

TEST(ColourTest, WorkersAndCheckpointsInUseAreGreen) {
  EXPECT_EQ(ColourOfWorker(worker_state::kReady), Colour::kGreen);
  EXPECT_EQ(ColourOfWorker(worker_state::kLost), Colour::kRed);
  EXPECT_EQ(ColourOf(v1::CHECKPOINT_STATE_COMMITTED), Colour::kGreen);
  EXPECT_EQ(ColourOf(v1::CHECKPOINT_STATE_QUARANTINED), Colour::kRed);
}

// A variable of the environment, which returns to what it was.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const former = std::getenv(name)) former_ = former;
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  ~Variable() { former_ ? setenv(name_, former_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
  std::optional<std::string> former_;
};

TEST(ColourTest, OnlyACapableTerminalShowsThemAndNoneWithNoColor) {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0)
    GTEST_SKIP() << "this machine has no pseudo-terminals";
  const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  const int file = open("/dev/null", O_RDWR);
  const auto shows = [&](const char* type, const char* no_color, int descriptor) {
    const Variable term("TERM", type), asked("NO_COLOR", no_color);
    return ShowsColours(descriptor);
  };
  EXPECT_TRUE(shows("xterm", nullptr, terminal));
  EXPECT_TRUE(shows("xterm", "", terminal));
  EXPECT_FALSE(shows("xterm", "1", terminal));
  EXPECT_FALSE(shows("dumb", nullptr, terminal));
  EXPECT_FALSE(shows(nullptr, nullptr, terminal));
  EXPECT_FALSE(shows("xterm", nullptr, file));
  close(file);
  close(terminal);
  close(master);
}

}  // namespace
}  // namespace troupe
