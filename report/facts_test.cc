#include "report/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "plan/job/job_defaults.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

constexpr int64_t kSubmitted = 1'700'000'000'000'000'000;
constexpr int64_t kSecond = 1'000'000'000;

void AddEvent(v1::JobState state, int64_t seconds, JobReport* report) {
  v1::JobEvent& event = report->events.emplace_back();
  event.set_state(state);
  event.set_wall_time_ns(kSubmitted + seconds * kSecond);
}

JobReport OfSteps(int count) {
  JobReport report;
  report.job.set_state(v1::JOB_STATE_RUNNING);
  report.job.set_create_wall_time_ns(kSubmitted);
  for (int number = 1; number <= count; ++number) {
    v1::StepEvent& step = report.steps.emplace_back();
    step.set_step(number);
    step.set_loss(1.0 / number);
    step.set_tokens(1000);
    step.set_wall_time_ns(kSubmitted + 10 * number * kSecond);
  }
  return report;
}

TEST(JobFactsTest, TheDurationOfAJobThatHasNotEndedIsThatToItsLastEventOrStep) {
  JobReport report = OfSteps(7);
  EXPECT_THAT(FactsOf(report), Contains(Pair("duration", "1:10")));
  AddEvent(v1::JOB_STATE_RUNNING, 3723, &report);
  EXPECT_THAT(FactsOf(report), Contains(Pair("duration", "1:02:03")));
  EXPECT_THAT(FactsOf(OfSteps(0)), Not(Contains(Key("duration")))) << "nothing happened yet";
}

TEST(JobFactsTest, TheDurationOfAJobThatEndedIsThatToItsEnd) {
  JobReport report = OfSteps(1);
  report.job.set_state(v1::JOB_STATE_SUCCEEDED);
  AddEvent(v1::JOB_STATE_FAILED, 20, &report);
  AddEvent(v1::JOB_STATE_RUNNING, 30, &report);
  AddEvent(v1::JOB_STATE_SUCCEEDED, 42, &report);
  AddEvent(v1::JOB_STATE_SUCCEEDED, 9000, &report);  // commit of a checkpoint
  EXPECT_THAT(FactsOf(report), Contains(Pair("duration", "42 s")));
}

TEST(JobFactsTest, TokensAreThoseOfTheSteps) {
  JobReport report = OfSteps(20);
  EXPECT_THAT(FactsOf(report), Contains(Pair("tokens trained", "20 k")));
  report.steps.erase(report.steps.begin());
  EXPECT_THAT(FactsOf(report), Contains(Pair("tokens trained", "19 k in 19 steps")));
  EXPECT_THAT(FactsOf(OfSteps(0)), Not(Contains(Key("tokens trained"))));
}

TEST(JobFactsTest, TokensAreThoseOfAllStepsWhereOnlySomeAreKept) {
  JobReport report = OfSteps(20);
  report.steps.erase(report.steps.begin() + 1, report.steps.end() - 1);
  report.trained_tokens = 21'000;
  report.all_steps = 20;
  EXPECT_THAT(FactsOf(report), Contains(Pair("tokens trained", "21 k")));
  report.all_steps = 15;
  EXPECT_THAT(FactsOf(report), Contains(Pair("tokens trained", "21 k in 15 steps")));
}

TEST(JobFactsTest, TheNewestValidationLossHasItsStep) {
  JobReport report = OfSteps(6);
  EXPECT_THAT(FactsOf(report), Not(Contains(Key("validation loss"))));
  report.steps[1].set_validation_loss(3);
  report.steps[3].set_validation_loss(2.5);
  EXPECT_THAT(FactsOf(report), Contains(Pair("validation loss", "2.5 at step 4")));
  report.steps[5].set_validation_loss(std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(FactsOf(report), Contains(Pair("validation loss", "nan at step 6")));
}

v1::Plan PlanOfTwoStages() {
  v1::Plan plan;
  plan.add_ranks();
  plan.add_ranks();
  plan.add_chunks()->set_blocks("ADAD");
  plan.add_chunks()->set_blocks("ADADAD");
  plan.set_parameters(8'030'000'000);
  return plan;
}

TEST(PlanFactsTest, TheyNameModelBatchSequencePrecisionAndDevices) {
  v1::JobSpec spec;
  spec.mutable_training()->set_global_batch_size(512);
  spec.mutable_training()->set_micro_batch_size(1);
  spec.mutable_training()->set_sequence_length(8192);
  spec.mutable_training()->set_compute_dtype("bfloat16");
  spec.mutable_training()->mutable_mixed_precision()->set_reduce("float32");
  ApplyDefaults(&spec);
  v1::Plan plan = PlanOfTwoStages();
  const TextRows facts = FactsOf(spec, plan, nullptr);
  EXPECT_THAT(facts, Contains(Pair("model", "(AD)x5")));
  EXPECT_THAT(facts, Contains(Pair("parameters", "8.03 G")));
  EXPECT_THAT(facts, Contains(Pair("ranks", "2")));
  EXPECT_THAT(facts, Contains(Pair("device", spec.devices())));
  EXPECT_THAT(facts, Contains(Pair("global batch", "512 samples")));
  EXPECT_THAT(facts, Contains(Pair("micro batch", "1 sample")));
  EXPECT_THAT(facts, Contains(Pair("sequence length", "8192 tokens")));
  EXPECT_THAT(facts, Contains(Pair("precision", testing::StartsWith("bfloat16"))));
  EXPECT_THAT(facts, Not(Contains(Key("device profile"))));
  EXPECT_THAT(facts, Not(Contains(Key("step, estimated"))));
}

TEST(PlanFactsTest, ADeviceHasItsModelAndTheProfileItsName) {
  v1::JobSpec spec;
  ApplyDefaults(&spec);
  v1::Plan plan = PlanOfTwoStages();
  plan.mutable_device()->set_kind("cuda");
  plan.mutable_device()->set_model("NVIDIA H200");
  plan.mutable_device_profile()->set_name("NVIDIA H200, roofline");
  const StepTime time = {.seconds = 0.5, .bubble_ratio = 0.25, .mfu = 0.4};
  const TextRows facts = FactsOf(spec, plan, &time);
  EXPECT_THAT(facts, Contains(Pair("device", "NVIDIA H200 (cuda)")));
  EXPECT_THAT(facts, Contains(Pair("device profile", "NVIDIA H200, roofline")));
  EXPECT_THAT(facts, Contains(Pair("MFU, estimated", "40.0%")));
}

}  // namespace
}  // namespace troupe
