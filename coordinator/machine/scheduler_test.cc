// Tests the quotas of namespaces in the whole machine: which jobs are admitted, and which start.
#include "coordinator/machine/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/job/job_view.h"
#include "coordinator/state/namespaces.h"
#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class QuotaTest : public ::testing::Test {
 protected:
  // `lab`: the keys of the namespace lab next to its name.
  void Use(const std::string& lab) {
    const auto parsed = Namespaces::Parse(
        fmt::format("namespaces: [{{name: default}}, {{name: lab, {}}}]", lab), "n.yaml");
    ASSERT_TRUE(parsed.ok()) << ToString(parsed.status());
    cluster_.Do(NamespacesChanged{*parsed});
  }

  Reply SubmitAs(const std::string& creator, const v1::JobSpec& spec) {
    CreateJobCall call{cluster_.next_call++, {}};
    *call.request.mutable_job() = spec;
    call.creator = creator;
    const Effects effects = cluster_.Do(call);
    EXPECT_EQ(effects.replies.size(), 1u);
    return effects.replies.at(0);
  }

  Status Submit(const std::string& id, int ranks) {
    return cluster_.Submit(TestSpec(id, ranks, 3)).status;
  }

  void Cancel(const std::string& id) {
    CancelJobCall call{cluster_.next_call++, {}};
    call.request.set_name(id);
    cluster_.Do(call);
  }

  Status Resume(const std::string& id, const v1::JobSpec& overrides = {}) {
    ResumeJobCall call{cluster_.next_call++, {}};
    call.request.set_name(id);
    *call.request.mutable_overrides() = overrides;
    const Effects effects = cluster_.Do(call);
    EXPECT_EQ(effects.replies.size(), 1u);
    return effects.replies.at(0).status;
  }

  // Ends the job, which starts in its first group epoch on worker-0, with all of its ranks.
  void End(const std::string& id) {
    cluster_.StartRanks(id);
    Cancel(id);
    cluster_.StopRanks(id, 1, {"worker-0"});
  }

  v1::JobState StateOf(const std::string& id) const { return cluster_.job(id).record.state(); }
  bool Holds(const std::string& id) const { return cluster_.job(id).group.has_value(); }

  TestCluster cluster_;
};

TEST_F(QuotaTest, AJobThatWouldExceedTheQuotaOfDevicesWaitsUntilAnotherEnds) {
  Use("quota: {devices: 3}");
  cluster_.Connect("worker-0", 8);
  ASSERT_TRUE(Submit("lab.a", 2).ok());
  ASSERT_TRUE(Submit("lab.b", 2).ok());
  EXPECT_TRUE(Holds("lab.a"));
  EXPECT_FALSE(Holds("lab.b"));
  EXPECT_EQ(DescribeJob(cluster_.job("lab.b"), false).waiting_for(),
            "2 ranks need 2 devices; quota.devices of the namespace lab is 3, and its other jobs "
            "use 2");
  End("lab.a");
  EXPECT_TRUE(Holds("lab.b"));
  EXPECT_EQ(cluster_.job("lab.b").waiting_for, "");
}

TEST_F(QuotaTest, TheJobsOfItsNamespaceWaitBehindAJobThatWaitsForQuotaAndOthersDoNot) {
  Use("quota: {devices: 4}");
  cluster_.Connect("worker-0", 8);
  ASSERT_TRUE(Submit("lab.a", 2).ok());
  ASSERT_TRUE(Submit("lab.large", 4).ok());
  ASSERT_TRUE(Submit("lab.small", 1).ok());
  ASSERT_TRUE(Submit("other", 2).ok());
  EXPECT_FALSE(Holds("lab.large"));
  EXPECT_FALSE(Holds("lab.small"));
  EXPECT_EQ(cluster_.job("lab.small").waiting_for, "waits behind jobs/lab.large");
  EXPECT_TRUE(Holds("other"));
  End("lab.a");
  EXPECT_TRUE(Holds("lab.large"));
  EXPECT_FALSE(Holds("lab.small"));
}

TEST_F(QuotaTest, AJobThatCanNeverStartByTheReducedQuotaBlocksNoOther) {
  Use("quota: {devices: 4}");
  ASSERT_TRUE(Submit("lab.large", 4).ok());
  ASSERT_TRUE(Submit("lab.small", 1).ok());
  Use("quota: {devices: 2}");
  cluster_.Connect("worker-0", 8);
  EXPECT_FALSE(Holds("lab.large"));
  EXPECT_TRUE(Holds("lab.small"));
  Use("quota: {devices: 5}");
  EXPECT_TRUE(Holds("lab.large")) << "the larger quota applies at once";
}

TEST_F(QuotaTest, AJobOfANamespaceThatIsNoLongerListedWaits) {
  Use("quota: {devices: 4}");
  ASSERT_TRUE(Submit("lab.a", 1).ok());
  const auto without = Namespaces::Parse("namespaces: [{name: default}]", "n.yaml");
  ASSERT_TRUE(without.ok());
  cluster_.Do(NamespacesChanged{*without});
  cluster_.Connect("worker-0", 1);
  EXPECT_FALSE(Holds("lab.a"));
  EXPECT_EQ(cluster_.job("lab.a").waiting_for, "the namespace lab does not exist");
  Cancel("lab.a");
  EXPECT_EQ(StateOf("lab.a"), v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(Resume("lab.a").code(), StatusCode::kInvalidArgument);
}

TEST_F(QuotaTest, AJobThatAloneExceedsTheQuotaIsRefused) {
  Use("quota: {devices: 2, priority: 1}");
  EXPECT_EQ(Submit("lab.a", 3).code(), StatusCode::kInvalidArgument);
  v1::JobSpec spec = TestSpec("lab.a", 2, 3);
  spec.set_priority(2);
  const Status refused = cluster_.Submit(spec).status;
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ToString(refused), HasSubstr("priority is 2, above quota.priority = 1"));
  spec.set_priority(1);
  EXPECT_TRUE(cluster_.Submit(spec).status.ok());
  EXPECT_EQ(cluster_.state().jobs.size(), 1u);
}

TEST_F(QuotaTest, AResumedJobRespectsTheQuota) {
  Use("quota: {devices: 2, jobs: 2}");
  cluster_.Connect("worker-0", 8);
  ASSERT_TRUE(Submit("lab.a", 2).ok());
  End("lab.a");
  ASSERT_TRUE(Submit("lab.b", 1).ok());
  v1::JobSpec larger;
  larger.mutable_parallelism()->set_data_parallel_replicate_degree(3);
  EXPECT_EQ(Resume("lab.a", larger).code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(Resume("lab.a").ok());
  EXPECT_FALSE(Holds("lab.a")) << "lab.b uses a device";
  Cancel("lab.a");
  ASSERT_TRUE(Submit("lab.c", 1).ok());
  EXPECT_EQ(Resume("lab.a").code(), StatusCode::kResourceExhausted);
}

TEST_F(QuotaTest, NumbersOfJobsAndQueuedJobsAreLimitedByNamespace) {
  Use("quota: {jobs: 2, queued: 1}");
  ASSERT_TRUE(Submit("lab.a", 1).ok());
  Status refused = Submit("lab.b", 1);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(ToString(refused), HasSubstr("1 queued job, and its quota.queued is 1"));
  EXPECT_TRUE(Submit("b", 1).ok()) << "of another namespace";
  cluster_.Connect("worker-0", 8);
  ASSERT_TRUE(Submit("lab.b", 1).ok());
  refused = Submit("lab.c", 1);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(ToString(refused), HasSubstr("2 jobs that have not ended, and its quota.jobs is 2"));
  End("lab.b");
  EXPECT_TRUE(Submit("lab.c", 1).ok());
}

TEST_F(QuotaTest, SubmissionsAreLimitedByTheMinute) {
  Use("quota: {submissions_per_minute: 2}");
  ASSERT_TRUE(Submit("lab.a", 1).ok());
  Cancel("lab.a");
  ASSERT_TRUE(Resume("lab.a").ok());
  const Status refused = Submit("lab.b", 1);
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(ToString(refused), HasSubstr("2 jobs were submitted in the namespace lab"));
  EXPECT_TRUE(Submit("b", 1).ok());
  cluster_.Pass(kSubmissionTime);
  EXPECT_TRUE(Submit("lab.b", 1).ok());
}

TEST_F(QuotaTest, ARepeatedRequestIsNoSubmission) {
  Use("quota: {submissions_per_minute: 1}");
  const v1::JobSpec spec = TestSpec("lab.a", 1, 3);
  ASSERT_TRUE(cluster_.Submit(spec, "r").status.ok());
  EXPECT_TRUE(cluster_.Submit(spec, "r").status.ok());
}

TEST_F(QuotaTest, TheJobsOfEachUserAreLimitedWithoutNamespacesToo) {
  cluster_.state().options.most_user_jobs = 2;
  for (const char* id : {"a", "b"}) ASSERT_TRUE(SubmitAs("ann", TestSpec(id, 1, 3)).status.ok());
  EXPECT_EQ(SubmitAs("ann", TestSpec("c", 1, 3)).status.code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(SubmitAs("bob", TestSpec("c", 1, 3)).status.ok());
  EXPECT_TRUE(SubmitAs("", TestSpec("d", 1, 3)).status.ok());
  Cancel("a");
  EXPECT_TRUE(SubmitAs("ann", TestSpec("e", 1, 3)).status.ok());
  EXPECT_EQ(Resume("a").code(), StatusCode::kResourceExhausted);
}

TEST_F(QuotaTest, TheCreatorOfAJobIsRecorded) {
  ASSERT_TRUE(SubmitAs("spiffe://lab/submitter/ann", TestSpec("a", 1, 3)).status.ok());
  cluster_.Restart();
  EXPECT_EQ(DescribeJob(cluster_.job("a"), false).creator(), "spiffe://lab/submitter/ann");
}

TEST_F(QuotaTest, PathsAndRootsAreThoseOfTheNamespace) {
  Use("roots: {data: /data/lab, checkpoints: /ck/lab}");
  cluster_.Connect("worker-0", 8);
  v1::JobSpec spec = TestSpec("lab.a", 1, 3);
  EXPECT_EQ(cluster_.Submit(spec).status.code(), StatusCode::kInvalidArgument) << "/ck";
  spec.mutable_checkpoint()->clear_folder();
  spec.mutable_data()->set_train("/data/lab/a");
  ASSERT_TRUE(cluster_.Submit(spec).status.ok());
  EXPECT_EQ(cluster_.job("lab.a").spec.checkpoint().folder(), "/ck/lab");
  const v1::CoordinatorMessage* const start =
      cluster_.Last("worker-0", v1::CoordinatorMessage::kStartRanks);
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(start->start_ranks().roots().data(), "/data/lab");
  EXPECT_EQ(start->start_ranks().roots().checkpoints(), "/ck/lab");
  ASSERT_TRUE(Submit("a", 1).ok());
  EXPECT_EQ(cluster_.job("a").last_group.roots().data(), "");
  End("lab.a");
  Use("roots: {data: /data/other}");
  const Status refused = Resume("lab.a");
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ToString(refused), HasSubstr("data.train is /data/lab/a, not beneath /data/other"));
}

TEST_F(QuotaTest, NamesOfJobsOfOtherNamespacesAreNotDisclosed) {
  Use("quota: {jobs: 9}");
  cluster_.Connect("worker-0", 2);
  ASSERT_TRUE(Submit("a", 2).ok());
  ASSERT_TRUE(Submit("secret", 2).ok());
  ASSERT_TRUE(Submit("lab.a", 1).ok());
  ASSERT_TRUE(Submit("b", 1).ok());
  EXPECT_EQ(cluster_.job("lab.a").waiting_for, "waits behind a job of another namespace");
  EXPECT_EQ(cluster_.job("b").waiting_for, "waits behind jobs/secret");
}

// Job lab.a, submitted for four ranks, has lost worker-1 after step 3 and may use three devices.
TEST_F(QuotaTest, ASmallerLayoutAndGrowthRespectTheQuota) {
  Use("quota: {devices: 4}");
  cluster_.Connect("worker-0", 2);
  cluster_.Connect("worker-1", 2);
  v1::JobSpec spec = TestSpec("lab.a", 4, 1000);
  spec.mutable_fault_tolerance()->set_allow_layout_change(true);
  spec.mutable_fault_tolerance()->set_hang_seconds(100000);
  ASSERT_TRUE(cluster_.Submit(spec).status.ok());
  cluster_.StartRanks("lab.a");
  Use("quota: {devices: 3}");
  const auto pass = [this](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      cluster_.Heartbeat();
      cluster_.Pass(std::chrono::seconds(1));
    }
  };
  cluster_.Disconnect("worker-1");
  pass(4);
  cluster_.StopRanks("lab.a", 1, {"worker-0"});
  cluster_.Connect("worker-1", 8);
  pass(20);
  ASSERT_TRUE(Holds("lab.a"));
  EXPECT_EQ(cluster_.job("lab.a").plan.ranks_size(), 3);
  cluster_.StartRanks("lab.a");
  ASSERT_EQ(StateOf("lab.a"), v1::JOB_STATE_RUNNING);
  pass(10);
  EXPECT_FALSE(cluster_.job("lab.a").grow_time) << "the quota does not allow four devices";
  Use("quota: {devices: 4}");
  EXPECT_TRUE(cluster_.job("lab.a").grow_time);
  ASSERT_TRUE(Submit("lab.b", 1).ok());
  EXPECT_FALSE(cluster_.job("lab.a").grow_time) << "lab.b uses the fourth device";
}

}  // namespace
}  // namespace troupe
