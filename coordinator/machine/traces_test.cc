#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/machine/traces.h"
#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using testing::HasSubstr;

constexpr CallId kCall = 900;

void Ask(TestCluster& cluster, int64_t first, int64_t last, const std::string& job = "jobs/a") {
  TraceJobCall call{kCall, {}};
  call.request.set_name(job);
  call.request.set_first_step(first);
  call.request.set_last_step(last);
  cluster.Do(call);
}

v1::WorkerMessage Answer(int32_t rank, uint64_t request, int code = 0) {
  v1::WorkerMessage message;
  v1::RankTrace& trace = *message.mutable_rank_trace();
  trace.set_request(request);
  trace.set_job("a");
  trace.set_group_epoch(1);
  trace.set_rank(rank);
  trace.set_code(code);
  trace.set_message(code == 0 ? "" : "rank 0 has a record of steps 4 to 6");
  return message;
}

const Reply& OnlyReply(const TestCluster& cluster) {
  EXPECT_EQ(cluster.replies.back().call, kCall);
  return cluster.replies.back();
}

constexpr auto kRequest = v1::CoordinatorMessage::kTraceRequest;

TEST(TracesTest, AreAskedOfEveryWorkerAndAnsweredOnceAllRanksHave) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  Ask(cluster, 3, 5);
  ASSERT_EQ(cluster.Count("worker-0", kRequest), 1);
  const v1::TraceRequest request = cluster.Last("worker-1", kRequest)->trace_request();
  EXPECT_EQ(request.first_step(), 3);
  EXPECT_EQ(request.last_step(), 5);
  EXPECT_EQ(request.group_epoch(), 1u);
  EXPECT_THAT(request.ranks(), testing::ElementsAre(1));
  const size_t before = cluster.replies.size();
  cluster.SendFrom("worker-1", Answer(1, request.request()));
  cluster.SendFrom("worker-1", Answer(1, request.request()));
  EXPECT_EQ(cluster.replies.size(), before);
  cluster.SendFrom("worker-0", Answer(0, request.request()));
  ASSERT_TRUE(OnlyReply(cluster).status.ok()) << OnlyReply(cluster).status;
  const auto& response = std::get<v1::TraceJobResponse>(OnlyReply(cluster).value);
  ASSERT_EQ(response.ranks_size(), 2);
  EXPECT_EQ(response.ranks(0).rank(), 0);
  EXPECT_EQ(response.ranks(1).rank(), 1);
}

TEST(TracesTest, ARefusalOfOneRankIsTheAnswer) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  Ask(cluster, 1, 2);
  const uint64_t number = cluster.Last("worker-0", kRequest)->trace_request().request();
  cluster.SendFrom("worker-0",
                   Answer(0, number, static_cast<int>(StatusCode::kFailedPrecondition)));
  EXPECT_EQ(OnlyReply(cluster).status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(OnlyReply(cluster).status)), HasSubstr("steps 4 to 6"));
  EXPECT_TRUE(cluster.state().traces.pending.empty());
}

TEST(TracesTest, ARangeThatNoJobHasIsRefused) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  for (const auto& [first, last] : {std::pair<int64_t, int64_t>{0, 3}, {5, 4}, {99, 101}}) {
    Ask(cluster, first, last);
    EXPECT_EQ(OnlyReply(cluster).status.code(), StatusCode::kInvalidArgument) << first;
  }
  Ask(cluster, 1, 2, "jobs/none");
  EXPECT_EQ(OnlyReply(cluster).status.code(), StatusCode::kNotFound);
  cluster.Disconnect("worker-0");
  Ask(cluster, 1, 2);
  EXPECT_THAT(std::string(Message(OnlyReply(cluster).status)), HasSubstr("cannot be reached now"));
}

TEST(TracesTest, ARankThatEndedIsAskedForWhatItLeft) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  Ask(cluster, 50, 60);
  ASSERT_EQ(cluster.Count("worker-0", kRequest), 1);
  v1::WorkerMessage stopped;
  stopped.mutable_rank_stopped()->set_job("a");
  stopped.mutable_rank_stopped()->set_group_epoch(1);
  stopped.mutable_rank_stopped()->set_crashed(true);
  cluster.SendFrom("worker-0", std::move(stopped));
  EXPECT_EQ(cluster.Count("worker-0", kRequest), 2);
}

TEST(TracesTest, StepsThatDoNotComeAreNotWaitedForLongerThanTheLimit) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  Ask(cluster, 50, 60);
  for (int second = 0; second < 650 && !cluster.state().traces.pending.empty(); ++second) {
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
  }
  EXPECT_TRUE(cluster.state().traces.pending.empty());
  const auto reply = std::find_if(cluster.replies.begin(), cluster.replies.end(),
                                  [](const Reply& one) { return one.call == kCall; });
  ASSERT_NE(reply, cluster.replies.end());
  EXPECT_EQ(reply->status.code(), StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace troupe
