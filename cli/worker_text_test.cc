#include "cli/worker_text.h"

#include <gtest/gtest.h>

#include "cli/exit_code.h"

namespace troupe {
namespace {

TEST(WorkerTextTest, NamesDevicesPlaceAndJobs) {
  v1::WorkerStatus worker;
  worker.set_name("worker-0");
  worker.set_state("READY");
  worker.set_island("vm");
  worker.set_pid(7);
  worker.set_host("host");
  worker.add_jobs("jobs/a");
  worker.add_jobs("jobs/b");
  worker.add_devices();
  EXPECT_EQ(WorkerText(worker),
            "worker-0             READY  1 device, island vm, pid 7 on host, runs jobs/a jobs/b");
  worker.add_devices()->set_index(1);
  worker.mutable_devices(1)->set_condemned("XID 79");
  EXPECT_EQ(WorkerText(worker),
            "worker-0             READY  2 devices, island vm, pid 7 on host, runs jobs/a jobs/b; "
            "device 1 is condemned: XID 79");
}

TEST(WorkerTextTest, StatesWhyAWorkerDrainsAndWhenItEnds) {
  v1::WorkerStatus worker;
  worker.set_name("worker-1");
  worker.set_state("DRAINING");
  worker.add_jobs("jobs/a");
  worker.mutable_drain()->set_by_operator(true);
  EXPECT_EQ(WorkerText(worker),
            "worker-1             DRAINING runs jobs/a; drained by an operator");
  worker.mutable_drain()->set_reason("a new kernel");
  EXPECT_EQ(WorkerText(worker),
            "worker-1             DRAINING runs jobs/a; drained by an operator: a new kernel");
  worker.mutable_drain()->set_reason("SIGTERM");
  worker.mutable_drain()->set_end_wall_time_ns(1'795'000'000'000'000'000);
  EXPECT_EQ(WorkerText(worker),
            "worker-1             DRAINING runs jobs/a; ends by 2026-11-18T11:06:40Z: SIGTERM");
}

TEST(WorkerTextTest, StatesSinceWhenAWorkerIsDrainedAndHowTheOrderEnds) {
  v1::WorkerStatus worker;
  worker.set_name("worker-1");
  worker.set_state("LOST");
  worker.mutable_drain()->set_by_operator(true);
  worker.mutable_drain()->set_reason("a new kernel");
  worker.mutable_drain()->set_since_wall_time_ns(1'795'000'000'000'000'000);
  EXPECT_EQ(
      WorkerText(worker),
      "worker-1             LOST   ; drained by an operator since 2026-11-18T11:06:40Z: a new "
      "kernel");
  worker.mutable_drain()->set_order_end_wall_time_ns(1'795'604'800'000'000'000);
  EXPECT_TRUE(WorkerText(worker).ends_with(
      "; the order ends at 2026-11-25T11:06:40Z, or by `troupe workers undrain worker-1`"));
}

TEST(WorkerTextTest, LeavesOutWhatAWorkerHasNotReported) {
  v1::WorkerStatus worker;
  worker.set_name("worker-1");
  worker.set_state("LOST");
  worker.add_jobs("jobs/long");
  EXPECT_EQ(WorkerText(worker), "worker-1             LOST   runs jobs/long");
}

TEST(WorkerTextTest, NamesTheJobsThatDoNotLeaveAWorkerThatDrains) {
  v1::WorkerStatus worker;
  worker.set_name("worker-1");
  worker.set_state("DRAINING");
  worker.mutable_drain()->set_by_operator(true);
  v1::StayingJob& job = *worker.mutable_drain()->add_staying_jobs();
  job.set_name("jobs/a");
  job.set_reason("it has no checkpoint.folder");
  EXPECT_TRUE(WorkerText(worker).ends_with(
      "drained by an operator; jobs/a stays: it has no checkpoint.folder"));
}

}  // namespace
}  // namespace troupe
