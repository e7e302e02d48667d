#include "coordinator/machine/device_demand.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

v1::Plan PlanWithRanks(int ranks) {
  v1::Plan plan;
  for (int rank = 0; rank < ranks; ++rank) plan.add_ranks();
  return plan;
}

TEST(DeviceDemandTest, JobsWantTheDevicesOfTheirSubmittedLayoutsUntilTheyEnd) {
  CoordinatorState state;
  EXPECT_EQ(DeviceDemand(state), 0);
  Job& queued = state.jobs["queued"];
  queued.record.set_state(v1::JOB_STATE_QUEUED);
  queued.plan = PlanWithRanks(3);
  Job& running = state.jobs["running"];
  running.record.set_state(v1::JOB_STATE_RUNNING);
  running.plan = PlanWithRanks(2);
  EXPECT_EQ(DeviceDemand(state), 5);
  running.smaller.emplace();
  *running.smaller->mutable_submitted_plan() = PlanWithRanks(4);
  EXPECT_EQ(DeviceDemand(state), 7);
  queued.record.set_state(v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(DeviceDemand(state), 4);
}

}  // namespace
}  // namespace troupe
