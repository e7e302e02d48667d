#include "coordinator/page/step_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

namespace troupe {
namespace {

using ::testing::ElementsAre;

v1::StepEvent StepOf(int64_t number, uint64_t epoch, double loss = 1) {
  v1::StepEvent step;
  step.set_step(number);
  step.set_group_epoch(epoch);
  step.set_loss(loss);
  return step;
}

v1::JobEvent EventAt(int64_t wall_time_ns, const char* kind) {
  v1::JobEvent event;
  event.set_wall_time_ns(wall_time_ns);
  event.set_event(kind);
  return event;
}

std::vector<int64_t> NumbersOf(const std::vector<v1::StepEvent>& steps) {
  std::vector<int64_t> numbers;
  for (const v1::StepEvent& step : steps) numbers.push_back(step.step());
  return numbers;
}

TEST(StepRecord, ReadsOnBehindTheLastStep) {
  StepRecord record(1);
  EXPECT_EQ(record.NextStep(0), 1);
  EXPECT_EQ(record.Through(5), 0);
  for (int64_t number = 1; number <= 3; ++number) record.Add(StepOf(number, 1));
  EXPECT_EQ(record.NextStep(5), 4);
  EXPECT_EQ(record.Through(5), 3);
  EXPECT_EQ(record.LastOfGroup(), 3);
  EXPECT_THAT(NumbersOf(record.Steps(3)), ElementsAre(1, 2, 3));
}

TEST(StepRecord, OfARepeatedStepTheNewestGroupCounts) {
  StepRecord record(2);
  for (int64_t number = 1; number <= 5; ++number) record.Add(StepOf(number, 1, 10));
  // The group began behind step 2, and its steps are not durable yet: they come after all others.
  EXPECT_EQ(record.NextStep(3), 1);
  record.Add(StepOf(3, 2, 20));
  record.Add(StepOf(3, 1, 10));
  EXPECT_EQ(record.NextStep(3), 4);
  EXPECT_EQ(record.LastOfGroup(), 3);
  const auto steps = record.Steps(3);
  EXPECT_THAT(NumbersOf(steps), ElementsAre(1, 2, 3));
  EXPECT_EQ(steps[2].loss(), 20);
}

TEST(StepRecord, WithoutAStepOfTheGroupOnlyTheLastStepsAreReadAgain) {
  StepRecord record(2);
  for (int64_t number = 1; number <= 5000; ++number) record.Add(StepOf(number, 1));
  EXPECT_EQ(record.Through(4000), 4000);
  EXPECT_EQ(record.NextStep(4000), 4000 - 1024 + 1);
}

// A catalog that was rebuilt from checkpoints has the job's step and no history.
TEST(StepRecord, StepsThatAreNotStoredAreReadForOnce) {
  StepRecord record(2);
  EXPECT_TRUE(record.IsBehind(5000));
  EXPECT_THAT(record.Shortfall(5000), testing::HasSubstr("through step 0 of 5000 so far"));
  record.EndRead(0, 5000);
  EXPECT_FALSE(record.IsBehind(5000));
  EXPECT_FALSE(record.IsBehind(5001)) << "the next step has come, which the tail brings";
  EXPECT_EQ(record.Shortfall(5000),
            "no steps are stored from step 1 through 5000, where the job is");
  record.Add(StepOf(5001, 2));
  EXPECT_FALSE(record.IsBehind(5001));
  EXPECT_EQ(record.Shortfall(5001), "");
}

TEST(StepRecord, AReadThatBringsStepsIsGoneOnWith) {
  StepRecord record(1);
  record.Add(StepOf(1, 1));
  record.EndRead(0, 3);
  EXPECT_TRUE(record.IsBehind(3));
  record.EndRead(1, 3);
  EXPECT_FALSE(record.IsBehind(3));
  record.Add(StepOf(2, 1));  // in the tail: the steps were late
  EXPECT_TRUE(record.IsBehind(3));
}

TEST(StepRecord, KeepsWhatTheChartsDraw) {
  v1::StepEvent step = StepOf(1, 1);
  step.set_validation_loss(2);
  step.set_mfu(0.5);
  step.add_norms()->set_block("head");
  StepRecord record(1);
  record.Add(step);
  const auto steps = record.Steps(1);
  EXPECT_EQ(steps[0].norms_size(), 0);
  EXPECT_EQ(steps[0].validation_loss(), 2);
  EXPECT_EQ(steps[0].mfu(), 0.5);
}

TEST(StepRecord, ALongHistoryHasLimitedSize) {
  StepRecord record(1);
  constexpr int64_t kSteps = 100'000;
  for (int64_t number = 1; number <= kSteps; ++number)
    record.Add(StepOf(number, 1, number == 777 ? 50 : std::sin(static_cast<double>(number))));
  const auto steps = record.Steps(kSteps);
  EXPECT_LE(steps.size(), StepRecord::kMostSteps);
  EXPECT_GT(steps.size(), 2000u);
  EXPECT_EQ(steps.front().step(), 1);
  EXPECT_EQ(steps.back().step(), kSteps);
  EXPECT_EQ(record.NextStep(kSteps), kSteps + 1);
  const auto numbers = NumbersOf(steps);
  EXPECT_TRUE(std::set<int64_t>(numbers.begin(), numbers.end()).contains(777));
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
}

v1::StepEvent StepWithTokens(int64_t number, uint64_t epoch, int64_t tokens) {
  v1::StepEvent step = StepOf(number, epoch);
  step.set_tokens(tokens);
  return step;
}

TEST(StepRecord, StepsAndTokensAreSummedBeforeTheStepsAreThinned) {
  StepRecord record(1);
  EXPECT_EQ(record.Sums(0), StepSums());
  constexpr int64_t kSteps = 50'000;
  for (int64_t number = 1; number <= kSteps; ++number)
    record.Add(StepWithTokens(number, 1, number % 7));
  record.Add(StepWithTokens(kSteps, 1, kSteps % 7));  // it arrives again
  int64_t tokens = 0;
  for (int64_t number = 1; number <= kSteps; ++number) tokens += number % 7;
  EXPECT_EQ(record.Sums(kSteps), (StepSums{kSteps, tokens}));
  EXPECT_LT(record.Steps(kSteps).size(), size_t{kSteps});
}

TEST(StepRecord, StepsThatAGroupRepeatsAreSummedOnce) {
  StepRecord record(2);
  for (int64_t number = 1; number <= 50'000; ++number) record.Add(StepWithTokens(number, 1, 10));
  EXPECT_EQ(record.Sums(40'000), (StepSums{40'000, 400'000})) << "the others are to be repeated";
  EXPECT_EQ(record.Sums(10'000), std::nullopt);
  record.Add(StepWithTokens(40'001, 2, 3));
  record.Add(StepWithTokens(40'002, 2, 3));
  record.Add(StepWithTokens(40'000, 1, 10));  // the last steps are read again
  EXPECT_EQ(record.Sums(40'002), (StepSums{40'002, 400'006}));
  EXPECT_EQ(record.Sums(40'003), (StepSums{40'003, 400'016})) << "as Steps has it";
}

TEST(StepRecord, TheSumsAreThoseOfTheStepsThatAreShown) {
  StepRecord record(3);
  const auto expect_sums = [&record](int64_t job_step) {
    StepSums shown;
    for (const v1::StepEvent& step : record.Steps(job_step)) {
      ++shown.steps;
      shown.tokens += step.tokens();
    }
    EXPECT_EQ(record.Sums(job_step), shown) << job_step;
  };
  for (int64_t number = 1; number <= 20; ++number) record.Add(StepWithTokens(number, 1, number));
  for (int64_t number = 11; number <= 20; ++number) record.Add(StepWithTokens(number, 2, 100));
  for (const int64_t step : {0, 5, 15, 20}) expect_sums(step);
  for (int64_t number = 16; number <= 18; ++number) record.Add(StepWithTokens(number, 3, 7));
  for (const int64_t step : {15, 18, 19, 20}) expect_sums(step);
}

TEST(StepRecord, AnEventThatArrivesAgainIsNoNewOne) {
  StepRecord record(1);
  record.Add(EventAt(2, "STARTED"));
  record.Add(EventAt(1, "QUEUED"));
  record.Add(EventAt(2, "STARTED"));
  const auto events = record.Events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].event(), "QUEUED");
  for (int64_t time = 3; time < 5000; ++time) record.Add(EventAt(time, "CHECKPOINT_COMMITTED"));
  EXPECT_EQ(record.Events().size(), StepRecord::kMostEvents);
  EXPECT_EQ(record.Events().back().wall_time_ns(), 4999);
}

TEST(ThinnedSteps, EveryExtremeAndGapOfARunStays) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  std::vector<v1::StepEvent> steps;
  for (int64_t number = 1; number <= 40; ++number) steps.push_back(StepOf(number, 1, 5));
  steps[12].set_loss(1);     // step 13
  steps[15].set_loss(9);     // step 16
  steps[17].set_loss(kNan);  // step 18
  steps[13].set_validation_loss(3);
  steps[14].set_validation_loss(2);
  steps[16].set_validation_loss(7);
  // The runs are 1 to 10, 11 to 20, 21 to 30 and 31 to 40.
  EXPECT_THAT(NumbersOf(ThinnedSteps(steps, 4)), ElementsAre(1, 13, 15, 16, 17, 18, 21, 31, 40));
  EXPECT_THAT(NumbersOf(ThinnedSteps({StepOf(7, 1)}, 4)), ElementsAre(7));
  EXPECT_TRUE(ThinnedSteps({}, 4).empty());
}

}  // namespace
}  // namespace troupe
