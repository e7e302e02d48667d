#include "cli/output/state_line.h"

#include <gtest/gtest.h>

#include "base/text/display_width.h"

namespace troupe {
namespace {

TEST(StateLineTest, ALongNameHasALineOfItsOwn) {
  const JobProgress job = {.name = "jobs/a", .state = "RUNNING", .step = 120, .steps = 200};
  EXPECT_EQ(StateLine(job, kAnyColumns), "jobs/a: RUNNING, step 120 of 200\n");
  EXPECT_EQ(StateLine(job, 32), "jobs/a: RUNNING, step 120 of 200\n");
  EXPECT_EQ(StateLine(job, 31), "jobs/a:\n  RUNNING, step 120 of 200\n");
  EXPECT_EQ(StateLine({.name = "jobs/" + std::string(63, 'n'), .state = "CHECKPOINTING"}, 50),
            "jobs/\n" + std::string(50, 'n') + "\n" + std::string(13, 'n') +
                ":\n  CHECKPOINTING, step 0 of 0\n");
}

TEST(StateLineTest, OnlyTheStateIsColoured) {
  EXPECT_EQ(StateLine({.name = "a\n\x1b", .state = "FAILED", .colour = Colour::kRed}, kAnyColumns),
            "a\\n\\u001b: \033[31mFAILED\033[0m, step 0 of 0\n");
}

}  // namespace
}  // namespace troupe
