#include "coordinator/service/job_phases.h"

#include <gtest/gtest.h>

#include <chrono>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace troupe {
namespace {

using std::chrono::seconds;

class JobPhasesTest : public testing::Test {
 protected:
  MonotonicTime At(int second) const { return MonotonicTime() + seconds(second); }
  double Spent(JobPhase phase) { return spent_["a"][phase]; }
  double SpentInAll() {
    double all = 0;
    for (const auto& [phase, time] : spent_["a"]) all += time;
    return all;
  }

  std::map<std::string, std::map<JobPhase, double>> spent_;
  std::vector<double> queue_waits_;
  JobPhases phases_{{.spent = [this](const std::string& job, JobPhase phase,
                                     double time) { spent_[job][phase] += time; },
                     .left_queue = [this](double time) { queue_waits_.push_back(time); }}};
};

TEST_F(JobPhasesTest, AllTimeOfAJobIsInOnePhase) {
  phases_.SetState("a", v1::JOB_STATE_QUEUED, At(0));
  phases_.SetState("a", v1::JOB_STATE_STARTING, At(10));
  phases_.SetState("a", v1::JOB_STATE_RUNNING, At(13));
  phases_.AddStep("a", false, At(15));
  phases_.AddStep("a", false, At(18));
  phases_.SetState("a", v1::JOB_STATE_RECOVERING, At(20));  // 2 s of a step are lost
  phases_.SetState("a", v1::JOB_STATE_STARTING, At(24));
  phases_.SetState("a", v1::JOB_STATE_RUNNING, At(25));
  phases_.AddStep("a", true, At(27));
  phases_.AddStep("a", false, At(29));
  phases_.SetState("a", v1::JOB_STATE_SUCCEEDED, At(30));
  phases_.Advance(At(99));
  EXPECT_EQ(Spent(JobPhase::kQueued), 10);
  EXPECT_EQ(Spent(JobPhase::kStarting), 3);
  EXPECT_EQ(Spent(JobPhase::kProductive), 5 + 2 + 1);
  EXPECT_EQ(Spent(JobPhase::kRecovering), 2 + 4 + 1);
  EXPECT_EQ(Spent(JobPhase::kRepeated), 2);
  EXPECT_EQ(SpentInAll(), 30);
  EXPECT_EQ(queue_waits_, std::vector<double>{10});
}

TEST_F(JobPhasesTest, TheTimeOfACommitIsTakenFromTheStepsAfterIt) {
  phases_.SetState("a", v1::JOB_STATE_RUNNING, At(0));
  phases_.AddStall("a", 3);
  phases_.AddStep("a", false, At(2));
  EXPECT_EQ(Spent(JobPhase::kCheckpointStall), 2);
  EXPECT_EQ(Spent(JobPhase::kProductive), 0);
  phases_.SetState("a", v1::JOB_STATE_CHECKPOINTING, At(3));
  phases_.AddStep("a", false, At(4));
  EXPECT_EQ(Spent(JobPhase::kCheckpointStall), 3);
  EXPECT_EQ(Spent(JobPhase::kProductive), 1);
}

TEST_F(JobPhasesTest, TheTimeOfAWaitingJobRisesBeforeItsStateChanges) {
  phases_.SetState("a", v1::JOB_STATE_QUEUED, At(0));
  EXPECT_EQ(spent_["a"].size(), std::size(kJobPhases));
  phases_.Advance(At(7));
  EXPECT_EQ(Spent(JobPhase::kQueued), 7);
  phases_.Forget("a");
  phases_.Advance(At(9));
  EXPECT_EQ(Spent(JobPhase::kQueued), 7);
}

TEST_F(JobPhasesTest, AJobThatIsPlacedAtOnceWaitedForNoTime) {
  phases_.SetState("a", v1::JOB_STATE_STARTING, At(5));
  phases_.SetState("a", v1::JOB_STATE_RUNNING, At(6));
  EXPECT_EQ(queue_waits_, std::vector<double>{0});
}

TEST_F(JobPhasesTest, AJobThatIsFoundStartingHasNoKnownWait) {
  phases_.Find("a", v1::JOB_STATE_STARTING, At(5));
  phases_.SetState("a", v1::JOB_STATE_RUNNING, At(7));
  EXPECT_EQ(Spent(JobPhase::kStarting), 2);
  EXPECT_EQ(queue_waits_, std::vector<double>{});
  phases_.Find("b", v1::JOB_STATE_RECOVERING, At(7));
  phases_.SetState("b", v1::JOB_STATE_RUNNING, At(9));
  EXPECT_EQ(spent_["b"][JobPhase::kRecovering], 2);
  phases_.Find("c", v1::JOB_STATE_CANCELLED, At(9));
  EXPECT_EQ(spent_.count("c"), 0u);
}

TEST_F(JobPhasesTest, AnEndedOrUnknownJobHasNoTime) {
  phases_.SetState("a", v1::JOB_STATE_FAILED, At(0));
  phases_.Advance(At(5));
  phases_.AddStep("b", false, At(5));
  phases_.AddStall("b", 1);
  EXPECT_TRUE(spent_.empty());
}

TEST_F(JobPhasesTest, AFailedJobHasLostItsRunningStep) {
  phases_.SetState("a", v1::JOB_STATE_RUNNING, At(0));
  phases_.SetState("a", v1::JOB_STATE_FAILED, At(4));
  EXPECT_EQ(Spent(JobPhase::kRecovering), 4);
}

}  // namespace
}  // namespace troupe
