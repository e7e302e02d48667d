#include "cli/worker_text.h"

#include <gtest/gtest.h>

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

TEST(WorkerTextTest, LeavesOutWhatAWorkerHasNotReported) {
  v1::WorkerStatus worker;
  worker.set_name("worker-1");
  worker.set_state("LOST");
  worker.add_jobs("jobs/long");
  EXPECT_EQ(WorkerText(worker), "worker-1             LOST   runs jobs/long");
}

}  // namespace
}  // namespace troupe
