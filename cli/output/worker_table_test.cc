#include "cli/output/worker_table.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

v1::WorkerStatus Worker(const char* name, const char* state) {
  v1::WorkerStatus worker;
  worker.set_name(name);
  worker.set_state(state);
  return worker;
}

TEST(WorkerTableTest, NamesDevicesPlaceAndJobs) {
  v1::WorkerStatus worker = Worker("worker-0", "READY");
  worker.set_island("vm");
  worker.set_pid(16796);
  worker.set_host("host");
  worker.add_jobs("jobs/a");
  worker.add_jobs("jobs/b");
  for (const char* kind : {"cuda", "cpu", "cuda"})
    worker.add_devices()->mutable_kind()->set_kind(kind);
  worker.mutable_devices(2)->set_index(1);
  worker.mutable_devices(2)->set_condemned("XID 79");
  EXPECT_EQ(WorkerTableText({worker, Worker("w", "LOST")}, {}),
            "WORKER    STATE  DEVICES        ISLAND  HOST    PID  JOBS\n"
            "worker-0  READY  1 cpu, 2 cuda  vm      host  16796  jobs/a jobs/b\n"
            "  device 1 is condemned: XID 79\n"
            "w         LOST\n"
            "an island: the workers that the fastest links join, by default one host\n");
}

TEST(WorkerTableTest, StatesAreColoured) {
  EXPECT_EQ(WorkerTableText({Worker("w", "READY")}, {.colours = true}),
            "WORKER  STATE\nw       \033[32mREADY\033[0m\n");
}

TEST(WorkerTableTest, NamesTheCoresOfRanks) {
  v1::WorkerStatus worker = Worker("w", "READY");
  v1::RankCores& rank = *worker.add_ranks();
  rank.set_job("jobs/a");
  rank.set_rank(2);
  for (const int core : {0, 1, 2}) rank.mutable_cores()->add_cores(core);
  rank.mutable_cores()->set_shared_by(2);
  EXPECT_EQ(WorkerTableText({worker}, {}),
            "WORKER  STATE\nw       READY\n"
            "  rank 2 of jobs/a on cores 0-2 (shared by 2 ranks)\n");
}

TEST(WorkerTableTest, StatesWhyAWorkerDrainsAndWhenItEnds) {
  v1::WorkerStatus worker = Worker("worker-1", "DRAINING");
  worker.add_jobs("jobs/a");
  worker.mutable_drain()->set_by_operator(true);
  const std::string row = "WORKER    STATE     JOBS\nworker-1  DRAINING  jobs/a\n";
  EXPECT_EQ(WorkerTableText({worker}, {}), row + "  drained by an operator\n");
  worker.mutable_drain()->set_reason("a new kernel");
  EXPECT_EQ(WorkerTableText({worker}, {}), row + "  drained by an operator: a new kernel\n");
  worker.mutable_drain()->set_reason("SIGTERM");
  worker.mutable_drain()->set_end_wall_time_ns(1'795'000'000'000'000'000);
  EXPECT_EQ(WorkerTableText({worker}, {}), row + "  ends by 2026-11-18T11:06:40Z: SIGTERM\n");
}

TEST(WorkerTableTest, StatesSinceWhenAWorkerIsDrainedAndHowTheOrderEnds) {
  v1::WorkerStatus worker = Worker("worker-1", "LOST");
  worker.mutable_drain()->set_by_operator(true);
  worker.mutable_drain()->set_reason("a new kernel");
  worker.mutable_drain()->set_since_wall_time_ns(1'795'000'000'000'000'000);
  worker.mutable_drain()->set_order_end_wall_time_ns(1'795'604'800'000'000'000);
  EXPECT_EQ(WorkerTableText({worker}, {}),
            "WORKER    STATE\nworker-1  LOST\n"
            "  drained by an operator since 2026-11-18T11:06:40Z: a new kernel\n"
            "  the order ends at 2026-11-25T11:06:40Z, or by `troupe workers undrain worker-1`\n");
}

TEST(WorkerTableTest, NamesTheJobsThatDoNotLeaveAWorkerThatDrains) {
  v1::WorkerStatus worker = Worker("worker-1", "DRAINING");
  worker.mutable_drain()->set_by_operator(true);
  v1::StayingJob& job = *worker.mutable_drain()->add_staying_jobs();
  job.set_name("jobs/a");
  job.set_reason("it has no checkpoint.folder");
  EXPECT_EQ(WorkerTableText({worker}, {}),
            "WORKER    STATE\nworker-1  DRAINING\n"
            "  drained by an operator\n"
            "  jobs/a stays: it has no checkpoint.folder\n");
}

TEST(WorkerTableTest, StatesWhatIsSetAside) {
  v1::WorkerStatus worker = Worker("w", "READY");
  v1::SetAside& part = *worker.add_set_aside();
  part.set_device(3);
  part.set_reason("WORKER_LOST on worker-1 (job a)");
  part.set_since_wall_time_ns(1'800'000'000'000'000'000);
  part.set_burning_in(true);
  EXPECT_EQ(WorkerTableText({worker}, {}),
            "WORKER  STATE\nw       READY\n"
            "  device 3 set aside since 2027-01-15T08:00:00Z, burn-in is running: WORKER_LOST on "
            "worker-1 (job a)\n");
}

}  // namespace
}  // namespace troupe
