#include "coordinator/machine/job_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "coordinator/test_cluster.h"
#include "coordinator/test_job_index.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(JobIndex, KnowsTheJobsOfAWorkerAlsoAfterTheirEnd) {
  TestCluster cluster;
  RunJob(cluster, 2, 3);
  EXPECT_THAT(cluster.state().index.OnWorker("worker-1"), ElementsAre("a"));
  EXPECT_THAT(cluster.state().index.OnWorker("worker-2"), IsEmpty());
  CancelJobCall cancel{cluster.next_call++, {}};
  cancel.request.set_name("a");
  cluster.Do(cancel);
  ASSERT_FALSE(cluster.job("a").group);
  EXPECT_THAT(cluster.state().index.OnWorker("worker-1"), ElementsAre("a"))
      << "it may have files to delete there";
  cluster.Restart();
  EXPECT_THAT(cluster.state().index.OnWorker("worker-1"), ElementsAre("a"));
}

TEST(JobIndex, ThatIsNotUpdatedDiffersFromTheLoops) {
  TestCluster cluster;
  RunJob(cluster, 2, 2);
  ASSERT_EQ(FaultOfJobIndex(cluster.state()), "");
  CoordinatorState state = cluster.state();
  state.index = {};
  EXPECT_THAT(FaultOfJobIndex(state), HasSubstr("jobs with deadlines:  in the index, a by a loop"));
  state = cluster.state();
  state.jobs.at("a").last_group.mutable_ranks(1)->set_worker("worker-7");
  EXPECT_THAT(FaultOfJobIndex(state), HasSubstr("worker-1"));
  state = cluster.state();
  state.jobs.at("a").group.reset();
  state.jobs.at("a").record.set_state(v1::JOB_STATE_QUEUED);
  EXPECT_NE(FaultOfJobIndex(state), "");
}

// Events in a random order, on a cluster whose workers come and go.
class RandomEvents {
 public:
  explicit RandomEvents(unsigned seed) : random_(seed) {
    for (int i = 0; i < kWorkers; ++i) cluster_.Connect(Name(i), 2);
  }

  // TestCluster compares the index with the loops after each event.
  void Next() {
    const std::string worker = Name(Below(kWorkers));
    switch (Below(14)) {
      case 0:
        cluster_.Submit(TestSpec("job-" + std::to_string(++jobs_), 1 + Below(4), 20));
        return;
      case 1:
        if (Below(4) == 0) cluster_.Disconnect(worker);
        return;
      case 2:
        if (cluster_.worker(worker).session == 0) cluster_.Connect(worker, 2);
        return;
      case 3:
        if (cluster_.worker(worker).session == 0) cluster_.Reconnect(worker);
        return;
      case 4:  // sometimes workers are lost meanwhile
        cluster_.Heartbeat();
        return cluster_.Pass(std::chrono::seconds(Below(8) == 0 ? 10 : 2));
      case 5:
        return ForAJob([this](const std::string& id) { Cancel(id); });
      case 6:
        return ForAJob([this](const std::string& id) { Delete(id); });
      case 7:
        if (Below(8) != 0) return;
        cluster_.Restart();
        for (int i = 1; i < kWorkers; ++i) cluster_.Reconnect(Name(i));
        return;
      default:
        return ForAJob([this](const std::string& id) { Train(id); });
    }
  }
  int groups() const { return groups_; }
  size_t most_jobs_of_a_worker() const { return most_jobs_of_a_worker_; }

 private:
  static constexpr int kWorkers = 4;

  static std::string Name(int worker) { return "worker-" + std::to_string(worker); }
  int Below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }

  template <typename Visit>
  void ForAJob(Visit visit) {
    const auto& jobs = cluster_.state().jobs;
    if (jobs.empty()) return;
    visit(std::string(std::next(jobs.begin(), Below(static_cast<int>(jobs.size())))->first));
  }

  void Cancel(const std::string& id) {
    CancelJobCall call{cluster_.next_call++, {}};
    call.request.set_name(id);
    cluster_.Do(call);
  }
  void Delete(const std::string& id) {
    DeleteJobCall call{cluster_.next_call++, {}};
    call.request.set_name(id);
    cluster_.Do(call);
  }
  // Lets the ranks of a new group run, or reports the next step.
  void Train(const std::string& id) {
    const Job& job = cluster_.job(id);
    if (!job.group) return;
    const auto& ranks = job.plan.ranks();
    if (std::any_of(ranks.begin(), ranks.end(), [this](const v1::RankPlacement& rank) {
          return cluster_.worker(rank.worker()).session == 0;
        }))
      return;
    for (const v1::RankPlacement& rank : ranks) {
      most_jobs_of_a_worker_ =
          std::max(most_jobs_of_a_worker_, cluster_.state().index.OnWorker(rank.worker()).size());
    }
    if (job.group->phase == GroupPhase::kStarting) {
      cluster_.StartRanks(id);
      ++groups_;
    } else if (job.group->phase == GroupPhase::kRunning) {
      cluster_.Report(id, job.record.step() + 1);
    }
  }

  std::mt19937 random_;
  TestCluster cluster_;
  int jobs_ = 0;
  int groups_ = 0;
  size_t most_jobs_of_a_worker_ = 0;
};

TEST(JobIndex, HasWhatLoopsFindAfterRandomEvents) {
  int groups = 0;
  size_t most_jobs = 0;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    RandomEvents events(seed);
    for (int i = 0; i < 300 && !testing::Test::HasFailure(); ++i) events.Next();
    groups += events.groups();
    most_jobs = std::max(most_jobs, events.most_jobs_of_a_worker());
  }
  // With too few groups, or one job on each worker, the events would show nothing.
  EXPECT_GT(groups, 30);
  EXPECT_GT(most_jobs, 1u);
}

}  // namespace
}  // namespace troupe
