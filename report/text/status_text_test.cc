#include "report/text/status_text.h"

#include <gtest/gtest.h>

#include "report/live/live_views_test.h"

namespace troupe {
namespace {

TEST(StatusTextTest, AFailureNamesWhereItHappened) {
  EXPECT_EQ(FailureLine(FromText<v1::Failure>("cause: 'HANG' rank: -1")), "HANG");
  EXPECT_EQ(FailureLine(FromText<v1::Failure>("cause: 'RANK_CRASHED' rank: 3 worker: 'w' "
                                              "exit_code: 7 message: 'm'")),
            "RANK_CRASHED of rank 3 on w, exit code 7: m");
}

TEST(StatusTextTest, ADrainByAnOperatorNamesHowItEnds) {
  const v1::WorkerStatus worker = FromText<v1::WorkerStatus>(R"(
      name: "w" drain { reason: "a new kernel" by_operator: true
                        since_wall_time_ns: 1795000000000000000
                        order_end_wall_time_ns: 1795000600000000000 })");
  const std::vector<std::string> expected = {
      "drained by an operator since 2026-11-18T11:06:40Z: a new kernel",
      "the order ends at 2026-11-18T11:16:40Z, or by `troupe workers undrain w`"};
  EXPECT_EQ(Restrictions(worker), expected);
  EXPECT_TRUE(Restrictions({}).empty());
}

TEST(StatusTextTest, NeighbouringCoresAreRanges) {
  v1::CoreSet set;
  EXPECT_EQ(CoreRanges(set), "");
  for (const int core : {0, 1, 2, 3, 8, 10, 11}) set.add_cores(core);
  EXPECT_EQ(CoreRanges(set), "0-3,8,10-11");
  set.set_shared_by(1);
  EXPECT_EQ(CoreRanges(set), "0-3,8,10-11");
  set.set_shared_by(2);
  EXPECT_EQ(CoreRanges(set), "0-3,8,10-11 (shared by 2 ranks)");
}

TEST(StatusTextTest, DevicesAreCountedByKind) {
  v1::WorkerStatus worker;
  EXPECT_EQ(DeviceCounts(worker), "");
  for (const char* kind : {"cuda", "cpu", "cuda"})
    worker.add_devices()->mutable_kind()->set_kind(kind);
  EXPECT_EQ(DeviceCounts(worker), "1 cpu, 2 cuda");
}

}  // namespace
}  // namespace troupe
