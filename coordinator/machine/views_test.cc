#include "coordinator/machine/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Jobs "old" and "lab.run", which have ended, and "wait" and "run", in the order of their creation
// old, wait, lab.run, run. Job "run" is the only one that runs.
void MakeListedJobs(TestCluster& cluster) {
  for (const char* name : {"old", "wait", "lab.run", "run"}) cluster.Submit(TestSpec(name, 1, 10));
  for (const char* name : {"old", "lab.run"})
    cluster.state().jobs.at(name).record.set_state(v1::JOB_STATE_SUCCEEDED);
  cluster.state().jobs.at("run").record.set_state(v1::JOB_STATE_RUNNING);
}

std::vector<std::string> ListedNames(TestCluster& cluster, const v1::ListJobsRequest& request) {
  v1::ListJobsResponse response;
  const Status status = ViewJobs(cluster.state(), request, {}, &response);
  EXPECT_TRUE(status.ok()) << status;
  std::vector<std::string> names;
  for (const v1::Job& job : response.jobs()) names.push_back(job.name());
  return names;
}

TEST(Views, JobsThatHaveNotEndedMayComeFirst) {
  TestCluster cluster;
  MakeListedJobs(cluster);
  v1::ListJobsRequest request;
  EXPECT_THAT(ListedNames(cluster, request),
              ElementsAre("jobs/old", "jobs/wait", "jobs/lab.run", "jobs/run"));
  request.set_active_first(true);
  EXPECT_THAT(ListedNames(cluster, request),
              ElementsAre("jobs/run", "jobs/wait", "jobs/lab.run", "jobs/old"));
  request.set_page_size(3);
  v1::ListJobsResponse response;
  ASSERT_TRUE(ViewJobs(cluster.state(), request, {}, &response).ok());
  EXPECT_EQ(response.jobs_size(), 3);
  EXPECT_EQ(response.all_jobs(), 4);
}

TEST(Views, JobsAreSelectedByStateAndNamespace) {
  TestCluster cluster;
  MakeListedJobs(cluster);
  v1::ListJobsRequest request;
  request.set_state("succeeded");
  EXPECT_THAT(ListedNames(cluster, request), ElementsAre("jobs/old", "jobs/lab.run"));
  request.set_in_namespace("lab");
  EXPECT_THAT(ListedNames(cluster, request), ElementsAre("jobs/lab.run"));
  request.set_state("RUNNING");
  EXPECT_THAT(ListedNames(cluster, request), IsEmpty());
  request.set_state("MOVING");
  EXPECT_THAT(ListedNames(cluster, request), IsEmpty());
  request.set_state("DONE");
  v1::ListJobsResponse response;
  const Status refused = ViewJobs(cluster.state(), request, {}, &response);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused;
}

TEST(Views, AJobHasTheLossOfItsLastStepWhileItIsKnown) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  const auto shown = [&cluster] {
    v1::ListJobsResponse response;
    EXPECT_TRUE(ViewJobs(cluster.state(), {}, {}, &response).ok());
    return response.jobs(0);
  };
  EXPECT_FALSE(shown().has_loss());
  ReportUpTo(cluster, 1, 4);
  EXPECT_EQ(shown().loss(), 0.25);
  cluster.Pass(cluster.state().options.limits.report_flush);
  cluster.Restart();
  EXPECT_EQ(shown().step(), 4);
  EXPECT_EQ(shown().loss(), 0.25) << "it is that of the history";
  // After a recovery the last step is an earlier one.
  cluster.state().jobs.at("a").record.set_step(3);
  EXPECT_FALSE(shown().has_loss());
}

TEST(Views, AStepWithoutATargetHasNoLossAndAnotherMayHaveOneThatIsNotFinite) {
  TestCluster cluster;
  RunJob(cluster, 1, 1);
  const auto loss_after = [&cluster](int64_t step, int64_t tokens) {
    v1::WorkerMessage message;
    v1::StepReport& report = *message.mutable_step_report();
    report.set_job("a");
    report.set_group_epoch(cluster.job("a").record.group_epoch());
    report.set_step(step);
    report.mutable_event()->set_loss(std::numeric_limits<double>::quiet_NaN());
    report.mutable_event()->set_tokens(tokens);
    cluster.SendFrom("worker-0", message);
    v1::GetJobRequest request;
    request.set_name("a");
    v1::GetJobResponse response;
    EXPECT_TRUE(ViewJob(cluster.state(), request, &response).ok());
    EXPECT_EQ(response.job().step(), step);
    return response.job();
  };
  EXPECT_FALSE(loss_after(1, 0).has_loss());
  EXPECT_TRUE(std::isnan(loss_after(2, 10).loss()));
  EXPECT_TRUE(loss_after(3, 10).has_loss());
}

}  // namespace
}  // namespace troupe
