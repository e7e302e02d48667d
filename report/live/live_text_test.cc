#include "report/live/live_text.h"

#include <gtest/gtest.h>

#include "report/live/links.h"
#include "report/live/live_views_test.h"

namespace troupe {
namespace {

TEST(LiveTextTest, ALongTextIsCutBetweenCharacters) {
  EXPECT_EQ(Clipped("short", 5), "short");
  EXPECT_EQ(Clipped("longer", 5), "longe… (1 more character)");
  EXPECT_EQ(Clipped("longest", 5), "longe… (2 more characters)");
  EXPECT_EQ(Clipped("äöü€", 3), "äöü… (1 more character)");
  EXPECT_EQ(Clipped("a\xff", 9), "a\\xff");
  EXPECT_EQ(Clipped("a\nb\r", 9), "a\nb\\r");
  EXPECT_EQ(Clipped("", 0), "");
  EXPECT_EQ(Clipped("a", 0), "… (1 more character)");
}

TEST(LiveTextTest, ATimeHasNoSeconds) {
  EXPECT_EQ(MinuteText(kViewNow), "2026-11-18 11:06 UTC");
  EXPECT_EQ(MinuteText(0), "1970-01-01 00:00 UTC");
}

TEST(LiveTextTest, AReasonIsThatOfTheMoveThenTheWaitThenTheFailure) {
  v1::Job job;
  EXPECT_EQ(ReasonOf(job), "");
  job.mutable_failure()->set_cause("HANG");
  EXPECT_EQ(ReasonOf(job), "HANG");
  job.mutable_failure()->set_message("no step for 300 s");
  EXPECT_EQ(ReasonOf(job), "HANG: no step for 300 s");
  job.set_waiting_for("2 devices");
  EXPECT_EQ(ReasonOf(job), "2 devices");
  job.set_moving("leaves worker-1");
  EXPECT_EQ(ReasonOf(job), "leaves worker-1");
}

TEST(LiveTextTest, WhatIsNotKnownOfDevicesIsLeftOut) {
  v1::WorkerStatus worker;
  EXPECT_EQ(DeviceFacts(worker), "");
  worker.add_devices()->set_cores(1);
  worker.mutable_devices(0)->mutable_kind()->set_kind("cpu");
  EXPECT_EQ(DeviceFacts(worker), "1 core");
}

TEST(LinksTest, EveryByteThatIsNoPartOfANameIsEncoded) {
  EXPECT_EQ(JobLink("jobs/lab.run-1_~"), "/jobs/lab.run-1_~");
  EXPECT_EQ(JobLink("jobs/../a?b#c%\xff"), "/jobs/..%2Fa%3Fb%23c%25%FF");
  EXPECT_EQ(LogsLink("jobs/a", std::nullopt), "/jobs/a/logs");
  EXPECT_EQ(LogsLink("jobs/a", 12), "/jobs/a/logs?rank=12");
  EXPECT_EQ(ClusterLink("", ""), "/");
  EXPECT_EQ(ClusterLink("A&B", ""), "/?state=A%26B");
  EXPECT_EQ(ClusterLink("A", "n"), "/?state=A&namespace=n");
  EXPECT_EQ(ClusterLink("", "n"), "/?namespace=n");
}

}  // namespace
}  // namespace troupe
