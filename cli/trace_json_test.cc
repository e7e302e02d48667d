#include "cli/trace_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using testing::UnorderedElementsAre;

struct Times {
  int64_t begin = 0;
  int64_t duration = 0;
};

v1::TraceEvent* Add(v1::RankTrace* rank, v1::TraceEvent::Kind kind, const std::string& name,
                    const Times& times) {
  v1::TraceEvent* const event = rank->add_events();
  event->set_kind(kind);
  event->set_name(rank->names_size());
  rank->add_names(name);
  event->set_begin_ns(times.begin);
  event->set_duration_ns(times.duration);
  event->set_step(3);
  return event;
}

std::vector<Json> Shown(const Json& trace, const std::string& name) {
  std::vector<Json> found;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["name"] == name) found.push_back(event);
  }
  return found;
}

TEST(TraceJsonTest, ClocksOfRanksAreBroughtTogether) {
  v1::TraceJobResponse trace;
  v1::RankTrace* const first = trace.add_ranks();
  first->set_realtime_offset_ns(5'000'000);
  Add(first, v1::TraceEvent::ACTION, "F0.1", {1'000, 2'000});
  v1::RankTrace* const second = trace.add_ranks();
  second->set_rank(1);
  second->set_realtime_offset_ns(4'000'000);
  Add(second, v1::TraceEvent::ACTION, "F1.1", {1'003'000, 2'000});
  const Json json = TraceToJson(trace, v1::Job());
  EXPECT_EQ(Shown(json, "F0.1")[0]["ts"], 0.0);
  EXPECT_EQ(Shown(json, "F0.1")[0]["dur"], 2.0);
  EXPECT_EQ(Shown(json, "F1.1")[0]["ts"], 2.0);
  EXPECT_EQ(Shown(json, "F1.1")[0]["pid"], 1);
  EXPECT_EQ(json["otherData"]["clocks"][1]["realtime_offset_ns"], 4'000'000);
}

TEST(TraceJsonTest, EachKindHasItsLaneAndOverlappingCollectivesLanesOfTheirOwn) {
  v1::TraceJobResponse trace;
  v1::RankTrace* const rank = trace.add_ranks();
  Add(rank, v1::TraceEvent::STEP, "step 3", {0, 100});
  Add(rank, v1::TraceEvent::OPERATION, "matmul a", {0, 10});
  Add(rank, v1::TraceEvent::CHECKPOINT, "write checkpoint", {0, 10});
  const int32_t lane = rank->names_size();
  rank->add_names("data_shard (gradient)");
  for (const Times& times : {Times{10, 20}, Times{20, 20}, Times{30, 20}}) {
    v1::TraceEvent* const event = Add(rank, v1::TraceEvent::COLLECTIVE, "reduce_scatter", times);
    event->set_lane(lane);
    event->set_bytes(64);
  }
  const Json json = TraceToJson(trace, v1::Job());
  EXPECT_EQ(Shown(json, "step 3")[0]["tid"], 0);
  EXPECT_EQ(Shown(json, "matmul a")[0]["tid"], 1);
  EXPECT_EQ(Shown(json, "write checkpoint")[0]["tid"], 2);
  const std::vector<Json> collectives = Shown(json, "reduce_scatter");
  ASSERT_EQ(collectives.size(), 3u);
  EXPECT_NE(collectives[0]["tid"], collectives[1]["tid"]);
  EXPECT_EQ(collectives[0]["tid"], collectives[2]["tid"]);
  EXPECT_EQ(collectives[0]["args"]["bytes"], 64);
  std::vector<std::string> lanes;
  for (const Json& event : json["traceEvents"]) {
    if (event["name"] == "thread_name") lanes.push_back(event["args"]["name"]);
  }
  EXPECT_THAT(lanes, UnorderedElementsAre("compute", "operations", "checkpoint",
                                          "data_shard (gradient)", "data_shard (gradient) 2"));
}

TEST(TraceJsonTest, AProcessHasTheCoordinatesOfItsRankOnAxesOfSeveralRanks) {
  v1::TraceJobResponse trace;
  trace.add_ranks()->set_rank(2);
  v1::Job job;
  v1::MeshDegrees& mesh = *job.mutable_layout();
  mesh.set_pipe(2);
  mesh.set_data_replicate(1);
  mesh.set_data_shard(1);
  mesh.set_context(1);
  mesh.set_expert(1);
  mesh.set_tensor(2);
  v1::RankStatus& rank = *job.add_ranks();
  rank.set_rank(2);
  rank.set_worker("worker-1");
  rank.mutable_coordinates()->set_pipe(1);
  const Json json = TraceToJson(trace, job);
  EXPECT_EQ(json["traceEvents"][0]["args"]["name"], "rank 2 (pipe 1, tensor 0) on worker-1");
}

}  // namespace
}  // namespace troupe
