#include "coordinator/page/trace_sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace troupe {
namespace {

v1::Job RunningJob(int ranks) {
  v1::Job job;
  job.set_state(v1::JOB_STATE_RUNNING);
  for (int rank = 0; rank < ranks; ++rank) job.add_ranks()->set_rank(rank);
  return job;
}

TEST(TraceSample, TheLastStepOfARunningJobIsAskedFor) {
  v1::Job job = RunningJob(2);
  EXPECT_EQ(StepToTrace(job, 7), 7);
  EXPECT_EQ(StepToTrace(job, 0), std::nullopt);
  EXPECT_EQ(StepToTrace(RunningJob(65), 7), std::nullopt);
  job.set_state(v1::JOB_STATE_CHECKPOINTING);
  EXPECT_EQ(StepToTrace(job, 7), 7);
  for (const v1::JobState state : {v1::JOB_STATE_QUEUED, v1::JOB_STATE_STARTING,
                                   v1::JOB_STATE_RECOVERING, v1::JOB_STATE_SUCCEEDED}) {
    job.set_state(state);
    EXPECT_EQ(StepToTrace(job, 7), std::nullopt);
  }
}

TEST(TraceSample, ErrorsOfOneViewerAreDistinguished) {
  for (const Status& error : {Unauthenticated("x"), PermissionDenied("x"), Cancelled("x")})
    EXPECT_TRUE(IsOfViewer(error)) << error;
  for (const Status& error : {OkStatus(), FailedPrecondition("x"), Unavailable("x"), NotFound("x"),
                              DeadlineExceeded("x")})
    EXPECT_FALSE(IsOfViewer(error)) << error;
}

TEST(TraceSample, AnErrorAndALargeAnswerAreStated) {
  TraceSample sample;
  v1::TraceJobResponse answer;
  answer.add_ranks()->set_rank(3);
  TakeTrace(answer, &sample);
  EXPECT_EQ(sample.trace.ranks_size(), 1);
  EXPECT_EQ(sample.error, "");
  TakeTrace(FailedPrecondition("gone"), &sample);
  EXPECT_EQ(sample.trace.ranks_size(), 0);
  EXPECT_EQ(sample.error, "FAILED_PRECONDITION: gone");
  answer.mutable_ranks(0)->add_names(std::string(kMostTraceBytes, 'x'));
  TakeTrace(answer, &sample);
  EXPECT_EQ(sample.trace.ranks_size(), 0);
  EXPECT_THAT(sample.error, testing::HasSubstr("above the 4194304"));
}

}  // namespace
}  // namespace troupe
