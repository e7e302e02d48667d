#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/state/catalog.h"
#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using testing::HasSubstr;

void ReportSkipped(TestCluster& cluster, int64_t step) {
  v1::WorkerMessage message;
  v1::StepReport* const report = message.mutable_step_report();
  report->set_job("a");
  report->set_group_epoch(1);
  report->set_step(step);
  report->set_step_seconds(0.5);
  report->mutable_event()->set_skipped(true);
  report->set_nonfinite("rank 1: the loss is not finite");
  cluster.SendFrom("worker-0", std::move(message));
}

std::vector<std::string> SkipEvents(const TestCluster& cluster) {
  std::vector<std::string> messages;
  for (const JobUpdate& update : cluster.updates) {
    if (update.update.event().event() == "STEP_SKIPPED") {
      messages.push_back(update.update.event().message());
    }
  }
  return messages;
}

TEST(SkippedStepsTest, AnEventNamesWhatWasNotFiniteAndManyInARowAreCounted) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  cluster.state().jobs.at("a").spec.mutable_fault_tolerance()->set_hang_seconds(600);
  for (int64_t step = 1; step <= 5; ++step) ReportSkipped(cluster, step);
  ASSERT_EQ(SkipEvents(cluster).size(), 1u);
  EXPECT_EQ(SkipEvents(cluster)[0], "step 1: rank 1: the loss is not finite");
  for (int second = 0; second < 12; ++second) {
    cluster.Heartbeat();
    cluster.Pass(std::chrono::seconds(1));
  }
  ReportSkipped(cluster, 6);
  ASSERT_EQ(SkipEvents(cluster).size(), 2u);
  EXPECT_THAT(SkipEvents(cluster)[1], HasSubstr("4 other steps were skipped since"));
}

}  // namespace
}  // namespace troupe
