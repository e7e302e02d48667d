// The identity of a job's data: reported at its first start, kept, and required at later starts.
#include <gtest/gtest.h>

#include <string>

#include "coordinator/test_cluster.h"

namespace troupe {
namespace {

using Kind = v1::CoordinatorMessage;

v1::DataIdentity DataOf(int64_t tokens) {
  v1::DataIdentity data;
  data.add_datasets()->set_tokens(tokens);
  return data;
}

class JobDataTest : public ::testing::Test {
 protected:
  JobDataTest() {
    for (const char* worker : {"worker-0", "worker-1"}) cluster_.Connect(worker);
    cluster_.Submit(TestSpec("a", 2, 100));
  }

  // A rank states its address, rank 0 with the data of `tokens` tokens; 0: it is older.
  void Address(int32_t rank, int64_t tokens) {
    v1::WorkerMessage message;
    v1::RankAddress& address = *message.mutable_rank_address();
    address.set_job("a");
    address.set_group_epoch(cluster_.job("a").record.group_epoch());
    address.set_rank(rank);
    address.set_address("address");
    if (tokens > 0) *address.mutable_data() = DataOf(tokens);
    cluster_.SendFrom(fmt::format("worker-{}", rank), message);
  }
  void Begin(int64_t tokens) {
    Address(0, tokens);
    Address(1, 0);
    cluster_.StartRanks("a");
    ASSERT_EQ(cluster_.job("a").record.state(), v1::JOB_STATE_RUNNING);
  }
  void Stop(uint64_t epoch, int32_t rank) {
    v1::WorkerMessage message;
    message.mutable_rank_stopped()->set_job("a");
    message.mutable_rank_stopped()->set_group_epoch(epoch);
    message.mutable_rank_stopped()->set_rank(rank);
    cluster_.SendFrom(fmt::format("worker-{}", rank), message);
  }
  void FailAndStop() {
    const uint64_t epoch = cluster_.job("a").record.group_epoch();
    cluster_.Crash("a", 0);
    Stop(epoch, 1);
    ASSERT_EQ(cluster_.job("a").record.state(), v1::JOB_STATE_STARTING);
  }
  // The tokens of the data that the newest StartRanks requires; 0: of none.
  int64_t Required() {
    const v1::StartRanks& start = cluster_.Last("worker-1", Kind::kStartRanks)->start_ranks();
    return start.has_data() ? start.data().datasets(0).tokens() : 0;
  }
  // The tokens of rank 0's data in the newest address book; 0: it has none.
  int64_t Booked() {
    const auto& rank0 = cluster_.Last("worker-1", Kind::kAddressBook)->address_book().addresses(0);
    return rank0.has_data() ? rank0.data().datasets(0).tokens() : 0;
  }
  int64_t Kept() {
    const auto& data = cluster_.job("a").data;
    return data ? data->datasets(0).tokens() : 0;
  }

  TestCluster cluster_;
};

TEST_F(JobDataTest, RanksCompareWithRank0UntilTheyHaveRunAndWithTheJobsOwnFromThenOn) {
  EXPECT_EQ(Required(), 0);
  Address(0, 50);
  Address(1, 0);
  EXPECT_EQ(Booked(), 50);
  EXPECT_EQ(Kept(), 0) << "another rank may have other data";
  cluster_.StartRanks("a");
  EXPECT_EQ(Kept(), 50);
  FailAndStop();
  EXPECT_EQ(Required(), 50);
  Begin(51);
  EXPECT_EQ(Booked(), 0) << "every rank has compared";
  EXPECT_EQ(Kept(), 50);
}

TEST_F(JobDataTest, AStartThatFailsBeforeTheRanksRunKeepsNothing) {
  Address(0, 50);
  Address(1, 0);
  FailAndStop();
  EXPECT_EQ(Required(), 0);
  Begin(60);
  EXPECT_EQ(Kept(), 60);
}

TEST_F(JobDataTest, TheIdentitySurvivesARestartOfTheCoordinatorAndAResume) {
  Begin(50);
  cluster_.Restart();
  for (const char* worker : {"worker-0", "worker-1"}) cluster_.Reconnect(worker);
  FailAndStop();
  EXPECT_EQ(Required(), 50);
  Begin(50);
  CancelJobCall cancel{cluster_.next_call++, {}};
  cancel.request.set_name("a");
  cluster_.Do(cancel);
  cluster_.StopRanks("a", cluster_.job("a").record.group_epoch(), {"worker-0", "worker-1"});
  ResumeJobCall resume{cluster_.next_call++, {}};
  resume.request.set_name("a");
  cluster_.Do(resume);
  EXPECT_EQ(Required(), 50);
}

TEST_F(JobDataTest, AJobOfAnOlderVersionGetsItsIdentityAtItsNextStart) {
  Begin(0);
  EXPECT_EQ(Kept(), 0);
  FailAndStop();
  EXPECT_EQ(Required(), 0);
  Begin(50);
  EXPECT_EQ(Kept(), 50);
}

TEST_F(JobDataTest, OtherDataEndTheJobWithBothSidesInItsFailureAndSoDoTheyAfterAResume) {
  Begin(50);
  const auto refuse = [&] {
    v1::WorkerMessage message;
    v1::RankFailed& failed = *message.mutable_rank_failed();
    failed.set_job("a");
    failed.set_group_epoch(cluster_.job("a").record.group_epoch());
    failed.set_rank(1);
    failed.set_code(static_cast<int>(StatusCode::kFailedPrecondition));
    failed.set_cause("DATA");
    failed.set_message("the job began with 50 tokens; host h has 51 tokens");
    cluster_.SendFrom("worker-1", message);
    const v1::JobRecord& record = cluster_.job("a").record;
    EXPECT_EQ(record.state(), v1::JOB_STATE_FAILED);
    EXPECT_EQ(record.failure().cause(), "DATA");
    EXPECT_EQ(record.failure().message(), failed.message());
    EXPECT_TRUE(cluster_.state().fleet.blame.empty()) << "it is not the host's fault";
    for (const int32_t rank : {0, 1}) Stop(record.group_epoch(), rank);
  };
  FailAndStop();
  refuse();
  ResumeJobCall resume{cluster_.next_call++, {}};
  resume.request.set_name("a");
  cluster_.Do(resume);
  ASSERT_EQ(cluster_.job("a").record.state(), v1::JOB_STATE_STARTING);
  refuse();
}

}  // namespace
}  // namespace troupe
