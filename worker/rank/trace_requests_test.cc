#include "worker/rank/trace_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/rank/rank_trace.h"

namespace troupe {
namespace {

using testing::HasSubstr;

class TraceRequestsTest : public testing::Test {
 protected:
  TraceRequestsTest()
      : trace_requests_(
            {.job = "a", .group_epoch = 2, .rank = 3},
            [](const StepTrace& trace, int64_t first, int64_t last) {
              return StatusOr<v1::RankTrace>(MakeRankTrace(trace, {}, first, last));
            },
            [this](v1::WorkerMessage message) { sent_.push_back(message.rank_trace()); }) {}

  void MakeStep(int64_t step) {
    trace_requests_.steps().BeginStep(step);
    trace_requests_.steps().EndStep();
    trace_requests_.AnswerUpTo(step);
  }
  void Ask(int64_t first, int64_t last) {
    v1::TraceRequest request;
    request.set_request(++requests_);
    request.set_first_step(first);
    request.set_last_step(last);
    trace_requests_.Submit(request);
  }

  uint64_t requests_ = 0;
  std::vector<v1::RankTrace> sent_;
  TraceRequests trace_requests_;
};

TEST_F(TraceRequestsTest, StepsThatAreDoneAreReportedAtOnce) {
  MakeStep(1);
  MakeStep(2);
  Ask(1, 2);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].request(), 1u);
  EXPECT_EQ(sent_[0].rank(), 3);
  EXPECT_EQ(sent_[0].group_epoch(), 2u);
  EXPECT_EQ(sent_[0].events_size(), 2);
  EXPECT_GT(sent_[0].realtime_offset_ns(), 0);
}

TEST_F(TraceRequestsTest, StepsToComeAreReportedOnceTheyAreDoneAndTheirOperationsAreKept) {
  MakeStep(1);
  Ask(2, 3);
  MakeStep(2);
  EXPECT_TRUE(sent_.empty());
  trace_requests_.steps().BeginStep(3);
  EXPECT_TRUE(trace_requests_.steps().wants_operations());
  trace_requests_.steps().EndStep();
  trace_requests_.AnswerUpTo(3);
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].code(), 0);
}

TEST_F(TraceRequestsTest, WhoWaitsForAStepThatIsNeverMadeIsRefusedWithTheRangeThatIsHeld) {
  MakeStep(1);
  Ask(5, 9);
  EXPECT_TRUE(sent_.empty());
  trace_requests_.EndSteps();
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].code(), static_cast<int>(StatusCode::kFailedPrecondition));
  EXPECT_THAT(sent_[0].message(),
              HasSubstr("has a record of steps 1 to 1 of start 2 of the ranks, not of 5 to 9"));
  Ask(6, 7);
  EXPECT_EQ(sent_.size(), 2u);
}

}  // namespace
}  // namespace troupe
