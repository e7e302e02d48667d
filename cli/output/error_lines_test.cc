#include "cli/output/error_lines.h"

#include <gtest/gtest.h>

#include "plan/job/violation.h"

namespace troupe {
namespace {

TEST(ErrorLines, AReasonOfOthersBeginsNoLine) {
  EXPECT_EQ(ErrorLines(Aborted("checkpoint attempt 3 of job a was aborted: {}",
                               "no space\ntroupe: job b is deleted\x1b[2J")),
            "checkpoint attempt 3 of job a was aborted: no space\\ntroupe: job b is "
            "deleted\\u001b[2J");
}

TEST(ErrorLines, EachViolationHasALine) {
  Violations violations;
  violations.Add("optimizer.name", "is {}", "x\ntraining.steps is 5, above 3");
  violations.Add("training.seed", "is required");
  EXPECT_EQ(ErrorLines(Annotate(violations.ToStatus(), "job.yaml")),
            "job.yaml: optimizer.name is x\\ntraining.steps is 5, above 3\n"
            "training.seed is required");
}

TEST(ErrorLinesTest, ManyViolationsAreCounted) {
  const auto lines_of = [](int count) {
    Violations violations;
    for (int i = 1; i <= count; ++i) violations.Add(fmt::format("k{}", i), "is an unknown key");
    return ErrorLines(violations.ToStatus());
  };
  EXPECT_EQ(lines_of(1), "k1 is an unknown key");
  EXPECT_TRUE(lines_of(20).ends_with("\nk20 is an unknown key"));
  EXPECT_TRUE(lines_of(21).ends_with("\nk20 is an unknown key\nand 1 more"));
  EXPECT_TRUE(lines_of(20'000).ends_with("\nk20 is an unknown key\nand 19980 more"));
}

}  // namespace
}  // namespace troupe
