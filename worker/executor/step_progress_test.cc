#include "worker/executor/step_progress.h"

#include <gtest/gtest.h>

#include <cstring>

namespace troupe {
namespace {

TEST(StepProgress, ZeroFilledMemoryIsIdle) {
  const StepProgress progress;
  EXPECT_EQ(Describe(progress), "idle");
}

TEST(StepProgress, NamesStepPieceAndKernel) {
  StepProgress progress;
  progress.step = 12;
  progress.Enter(Phase::kForward, 1, 3);
  EXPECT_EQ(Describe(progress), "step 12: forward of chunk 1, microbatch 3");
  std::strcpy(progress.operation, "block1.attention.qkv");
  EXPECT_EQ(Describe(progress), "step 12: forward of chunk 1, microbatch 3 (block1.attention.qkv)");
  progress.operation[0] = '\0';
  progress.Enter(Phase::kUpdate);
  EXPECT_EQ(Describe(progress), "step 12: update");
  progress.Enter(Phase::kWaitResult);
  EXPECT_EQ(Describe(progress), "step 12: waiting for its result");
}

TEST(StepProgress, TextThatIsNotTerminatedIsNotReadPast) {
  StepProgress progress;
  std::memset(progress.operation, 'x', sizeof(progress.operation));
  EXPECT_EQ(Describe(progress), "idle (" + std::string(sizeof(progress.operation), 'x') + ")");
}

}  // namespace
}  // namespace troupe
