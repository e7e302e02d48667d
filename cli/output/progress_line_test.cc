#include "cli/output/progress_line.h"

#include <gtest/gtest.h>

#include "base/text/display_width.h"

namespace troupe {
namespace {

v1::StepEvent Step(int64_t step) {
  v1::StepEvent event;
  event.set_step(step);
  event.set_loss(2.5);
  event.set_tokens_per_second(1234.4);
  return event;
}

TEST(ProgressLineTest, ShowsStepLossRateAndTimeLeft) {
  v1::StepEvent step = Step(100);
  EXPECT_EQ(ProgressLine::Text(step, 300, 0.5, 79),
            "step 100/300  loss  2.5000    1234 tokens/s     1:40 left");
  step.set_mfu(0.421);
  EXPECT_EQ(ProgressLine::Text(step, 300, 0.5, 79),
            "step 100/300  loss  2.5000    1234 tokens/s  MFU 42.1%     1:40 left");
}

TEST(ProgressLineTest, NumbersOfOtherLengthsMoveNothing) {
  v1::StepEvent small = Step(9), large = Step(150);
  small.set_loss(12.5);
  small.set_tokens_per_second(618421);
  small.set_mfu(0.05);
  large.set_mfu(0.421);
  EXPECT_EQ(ProgressLine::Text(small, 300, std::nullopt, 79),
            "step   9/300  loss 12.5000  618421 tokens/s  MFU  5.0%");
  EXPECT_EQ(ProgressLine::Text(large, 300, std::nullopt, 79),
            "step 150/300  loss  2.5000    1234 tokens/s  MFU 42.1%");
}

TEST(ProgressLineTest, AFinishedJobHasNoTimeLeft) {
  EXPECT_EQ(ProgressLine::Text(Step(300), 300, 0.5, 79),
            "step 300/300  loss  2.5000    1234 tokens/s");
  EXPECT_EQ(ProgressLine::Text(Step(100), 300, std::nullopt, 79),
            "step 100/300  loss  2.5000    1234 tokens/s")
      << "it failed there";
}

TEST(ProgressLineTest, ANarrowTerminalDoesNotCutTheTimeLeft) {
  v1::StepEvent step = Step(100);
  step.set_mfu(0.421);
  for (size_t columns = 33; columns <= 80; ++columns) {
    const std::string text = ProgressLine::Text(step, 300000, 0.5, columns);
    EXPECT_LE(DisplayColumns(text), columns);
    EXPECT_TRUE(text.ends_with("41:39:10 left")) << text;
  }
  EXPECT_EQ(ProgressLine::Text(step, 300000, 0.5, 49),
            "step    100/300000  loss  2.5000  41:39:10 left");
}

}  // namespace
}  // namespace troupe
