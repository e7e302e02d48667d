#include "cli/output/step_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace troupe {
namespace {

constexpr MonotonicTime kBegin{std::chrono::hours(1)};

v1::StepEvent StepOf(int64_t step) {
  v1::StepEvent event;
  event.set_step(step);
  event.set_loss(2.5);
  event.set_grad_norm(1.25);
  event.set_learning_rate(3e-4);
  event.set_tokens_per_second(1234.4);
  return event;
}

// Returns the steps from 1 to `steps` that have a row, if all arrive at once.
std::vector<int64_t> StepsWithRows(int64_t steps) {
  StepHistory history(steps, false);
  std::vector<int64_t> shown;
  for (int64_t step = 1; step <= steps; ++step) {
    if (!history.StepText(StepOf(step), kBegin, 79).empty()) shown.push_back(step);
  }
  return shown;
}

TEST(StepHistoryTest, ARowHasLossGradientLearningRateAndRate) {
  StepHistory history(200, false);
  v1::StepEvent step = StepOf(1);
  EXPECT_EQ(history.StepText(step, kBegin, 79),
            " step       loss  validation  grad norm  learning rate  tokens/s     MFU\n"
            "    1     2.5000                 1.2500      3.000e-04      1234\n");
  step.set_step(50);
  step.set_validation_loss(2.75);
  step.set_mfu(0.421);
  EXPECT_EQ(history.StepText(step, kBegin, 79),
            "   50     2.5000      2.7500     1.2500      3.000e-04      1234   42.1%\n");
}

TEST(StepHistoryTest, EveryNthStepHasARowAndTheFirstAndTheLast) {
  EXPECT_EQ(StepHistory(0, false).stride(), 1);
  EXPECT_EQ(StepHistory(40, false).stride(), 1);
  EXPECT_EQ(StepHistory(80, false).stride(), 2);
  EXPECT_EQ(StepHistory(200, false).stride(), 5);
  EXPECT_EQ(StepHistory(1'000'000, false).stride(), 50'000);
  EXPECT_EQ(StepsWithRows(3), (std::vector<int64_t>{1, 2, 3}));
  const std::vector<int64_t> shown = StepsWithRows(203);
  ASSERT_EQ(shown.size(), 42u);
  EXPECT_EQ(shown[0], 1);
  EXPECT_EQ(shown[1], 5);
  EXPECT_EQ(shown[40], 200);
  EXPECT_EQ(shown[41], 203);
}

TEST(StepHistoryTest, EachValidationAndSlowStepsHaveARow) {
  StepHistory history(100'000, false);
  EXPECT_NE(history.StepText(StepOf(1), kBegin, 79), "");
  EXPECT_EQ(history.StepText(StepOf(2), kBegin + std::chrono::seconds(30), 79), "");
  EXPECT_NE(history.StepText(StepOf(3), kBegin + std::chrono::seconds(60), 79), "");
  EXPECT_EQ(history.StepText(StepOf(4), kBegin + std::chrono::seconds(90), 79), "");
  v1::StepEvent validated = StepOf(5);
  validated.set_validation_loss(3);
  EXPECT_NE(history.StepText(validated, kBegin + std::chrono::seconds(91), 79), "");
}

TEST(StepHistoryTest, TheTitlesAreRepeated) {
  StepHistory history(30, false);
  int titles = 0;
  for (int64_t step = 1; step <= 30; ++step) {
    titles += history.StepText(StepOf(step), kBegin, 79).starts_with(" step  ") ? 1 : 0;
  }
  EXPECT_EQ(titles, 2);
}

TEST(StepHistoryTest, RowsFitIntoEightyColumns) {
  StepHistory history(1'000'000, false);
  v1::StepEvent step = StepOf(1'000'000);
  step.set_loss(12.5);
  step.set_validation_loss(12.5);
  step.set_tokens_per_second(72'618'421);
  step.set_mfu(0.421);
  const std::string text = history.StepText(step, kBegin, 79);
  EXPECT_EQ(std::ranges::count(text, '\n'), 2);
  EXPECT_LE(text.find('\n'), 79u) << text;
  EXPECT_LE(text.size() - text.find('\n') - 2, 79u) << text;
}

TEST(StepHistoryTest, AnEventHasItsStepAndOneLine) {
  v1::JobEvent event;
  event.set_event("CHECKPOINT_COMMITTED");
  event.set_step(50);
  event.set_message("step 50, attempt 1: /c\n\x1b[2J");
  EXPECT_EQ(StepHistory(200, true).EventText(event, 79),
            "   50  CHECKPOINT_COMMITTED step 50, attempt 1: /c\\n\\u001b[2J\n");
  event.set_event("FAILED");
  event.clear_message();
  EXPECT_EQ(StepHistory(200, true).EventText(event, 79), "   50  \033[31mFAILED\033[0m\n");
  EXPECT_EQ(StepHistory(200, false).EventText(event, 79), "   50  FAILED\n");
}

TEST(StepHistoryTest, ANarrowTerminalShowsStepLossAndValidation) {
  StepHistory history(200, false);
  v1::StepEvent step = StepOf(1);
  step.set_validation_loss(2.75);
  step.set_mfu(0.421);
  EXPECT_EQ(history.StepText(step, kBegin, 49),
            " step       loss  validation  learning rate\n"
            "    1     2.5000      2.7500      3.000e-04\n");
  step.set_step(5);
  EXPECT_EQ(history.StepText(step, kBegin, 49), "    5     2.5000      2.7500      3.000e-04\n");
  step.set_step(10);
  EXPECT_EQ(history.StepText(step, kBegin, 30),
            " step       loss  validation\n"
            "   10     2.5000      2.7500\n")
      << "the window has become narrower";
  step.set_step(15);
  EXPECT_EQ(history.StepText(step, kBegin, 10), " step       loss\n   15     2.5000\n");
}

TEST(StepHistoryTest, ALongEventIsBrokenAndItsPathIsRelative) {
  v1::JobEvent event;
  event.set_event("CHECKPOINT_COMMITTED");
  event.set_step(50);
  event.set_message("step 50, attempt 1: /h/ada/checkpoints/" + std::string(63, 'n') +
                    "/step-00000050-epoch-1-attempt-1-at-1795502192641693564");
  EXPECT_EQ(StepHistory(200, false, "/h/ada").EventText(event, 79),
            "   50  CHECKPOINT_COMMITTED step 50, attempt 1:\n"
            "       checkpoints/\n"
            "       " +
                std::string(63, 'n') +
                "/\n"
                "       step-00000050-epoch-1-attempt-1-at-1795502192641693564\n");
  event.set_message("the ranks of a group");
  event.set_event("FAILED");
  EXPECT_EQ(StepHistory(200, true).EventText(event, 20),
            "   50  \033[31mFAILED\033[0m the\n       ranks of a\n       group\n");
}

}  // namespace
}  // namespace troupe
