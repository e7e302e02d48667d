#include "plan/job/message_json.h"

#include <gtest/gtest.h>

#include "troupe/v1/service.pb.h"

namespace troupe {
namespace {

TEST(MessageJsonTest, TheNamedFieldsComeInTheirOrderWithEveryKindOfValue) {
  v1::CheckpointRecord record;
  record.set_path("/c");
  record.set_group_epoch(uint64_t{1} << 63);
  record.set_bytes(int64_t{1} << 60);
  record.set_duration_seconds(0.1);
  record.set_pinned(true);
  record.set_state(v1::CHECKPOINT_STATE_COMMITTED);
  record.mutable_layout()->set_tensor(2);
  EXPECT_EQ(MessageToJson(record, {"path", "state", "group_epoch", "bytes", "duration_seconds",
                                   "pinned", "verified", "layout"})
                .dump(),
            R"({"path":"/c","state":"COMMITTED","group_epoch":9223372036854775808,)"
            R"("bytes":1152921504606846976,"duration_seconds":0.1,"pinned":true,"verified":false,)"
            R"("layout":{"pipe":0,"data_replicate":0,"data_shard":0,"context":0,)"
            R"("expert":0,"tensor":2}})");
}

TEST(MessageJsonTest, RepeatedFieldsAreArraysOfScalarsAndOfWholeMessages) {
  v1::WorkerStatus worker;
  worker.add_jobs("a");
  worker.add_jobs("b");
  worker.add_set_aside()->set_reason("slow");
  v1::RankCores& rank = *worker.add_ranks();
  rank.mutable_cores()->add_cores(3);
  EXPECT_EQ(
      MessageToJson(worker, {"jobs", "set_aside", "ranks"}).dump(),
      R"({"jobs":["a","b"],"set_aside":[{"device":null,"reason":"slow","since_wall_time_ns":0,)"
      R"("burn_in_wall_time_ns":0,"burning_in":false}],)"
      R"("ranks":[{"job":"","group_epoch":0,"rank":0,"cores":{"cores":[3],"shared_by":0}}]})");
}

TEST(MessageJsonTest, AnAbsentOptionalIsNullAndAnAbsentMessageHasDefaults) {
  v1::AxisTraffic traffic;
  EXPECT_EQ(MessageToJson(traffic)["across_islands_bytes_per_step"], nullptr);
  traffic.set_across_islands_bytes_per_step(0);
  EXPECT_EQ(MessageToJson(traffic)["across_islands_bytes_per_step"], 0);
  EXPECT_EQ(MessageToJson(v1::RankStatus(), {"coordinates"})["coordinates"]["pipe"], 0);
}

TEST(MessageJsonTest, NamesOfEnumerationsLoseTheirPrefix) {
  EXPECT_EQ(EnumText(*v1::JobState_descriptor(), v1::JOB_STATE_RUNNING), "RUNNING");
  EXPECT_EQ(EnumText(*v1::JobState_descriptor(), 0), "UNSPECIFIED");
  EXPECT_EQ(EnumText(*v1::JobState_descriptor(), 99), "");
  EXPECT_EQ(EnumText(*v1::TraceEvent::Kind_descriptor(), v1::TraceEvent::CHECKPOINT), "CHECKPOINT");
}

}  // namespace
}  // namespace troupe
