#include "coordinator/kubernetes/controller.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "coordinator/kubernetes/controller_test.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ControllerTest, AJobIsCreatedAfterFinalizerAndStatusAreWritten) {
  Turns(4);
  EXPECT_THAT(server_.Writes(),
              ElementsAre(HasSubstr("troupejobs/a"), HasSubstr("troupejobs/a/status")));
  EXPECT_THAT(jobs_.calls, ElementsAre("create u a"));
  Turns(5);  // the call has not ended
  EXPECT_EQ(jobs_.calls.size(), 1u);
  jobs_.outcomes = {{"u", OkStatus()}};
  jobs_.job = JobFacts{.name = "a", .state = v1::JOB_STATE_QUEUED, .steps = 9};
  Turns(3);
  EXPECT_EQ(State(), "QUEUED");
  EXPECT_EQ(server_.object["status"]["jobName"], "a");
  EXPECT_EQ(jobs_.calls.size(), 1u);
}

TEST_F(ControllerTest, AServerThatEndsEachWatchAfterALineIsNotAskedInALoop) {
  Run();
  const Json event = {{"type", "MODIFIED"}, {"object", server_.object}};
  server_.each_watch = {.lines = {event.dump()}, .ended = true, .code = HttpCode::kOk};
  server_.read = *server_.each_watch;
  const size_t watches = server_.watches.size();
  const MonotonicTime begin = clock_.now;
  Turns(100);
  EXPECT_GT(server_.watches.size(), watches);
  EXPECT_LE(static_cast<double>(server_.watches.size() - watches),
            2 * ToSeconds(clock_.now - begin) + 1);
}

TEST_F(ControllerTest, NoJobIsCreatedWhileTheStatusCannotBeWritten) {
  server_.object["metadata"]["finalizers"] = {std::string(kFinalizer)};
  server_.refusal = {.code = 500,
                     .body = R"({"message": ".status.mfu: field not declared in schema"})"};
  Turns(200);
  EXPECT_GT(server_.Writes().size(), 2u);
  EXPECT_LT(server_.Writes().size(), 15u);  // slowly
  EXPECT_TRUE(jobs_.calls.empty());
  server_.refusal.reset();
  Turns(70);
  EXPECT_THAT(jobs_.calls, ElementsAre("create u a"));
}

TEST_F(ControllerTest, AStateIsWrittenSoonAfterManyConflicts) {
  Run();
  server_.refusal = {.code = HttpCode::kConflict, .body = "{}"};
  jobs_.job->state = v1::JOB_STATE_RECOVERING;
  testing::internal::CaptureStderr();
  const size_t writes = server_.Writes().size();
  Turns(100);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("TroupeJob a cannot be written: 8 writes in a row"));
  EXPECT_LT(server_.Writes().size(), writes + 50);  // not in a loop
  server_.refusal.reset();
  const MonotonicTime end = clock_.now;
  while (State() != "RECOVERING" && clock_.now < end + std::chrono::minutes(5)) Turns(1);
  EXPECT_LE(ToSeconds(clock_.now - end), 6);
}

TEST_F(ControllerTest, FiguresAreWrittenEveryTenSecondsAndStatesAtOnce) {
  Run();
  EXPECT_EQ(State(), "RUNNING");
  const size_t writes = server_.Writes().size();
  ++jobs_.job->step;
  Turns(5);
  EXPECT_EQ(server_.Writes().size(), writes);
  Turns(6);
  EXPECT_EQ(server_.Writes().size(), writes + 1);
  jobs_.job->state = v1::JOB_STATE_RECOVERING;
  Turns(2);
  EXPECT_EQ(State(), "RECOVERING");
}

TEST_F(ControllerTest, ATooOldWatchListsAnewAndALineThatWasCutDoesNot) {
  Run();
  EXPECT_EQ(server_.watches.size(), 1u);
  EXPECT_THAT(server_.watches[0], HasSubstr("watch=true&allowWatchBookmarks=true"));
  server_.read = {
      .lines = {R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"40"}}})"},
      .ended = true,
      .code = HttpCode::kOk};
  Turns(3);  // a pause follows a watch that was short
  ASSERT_EQ(server_.watches.size(), 2u);
  EXPECT_THAT(server_.watches[1], HasSubstr("resourceVersion=40&"));
  const auto lists = [this] {
    return std::ranges::count_if(server_.requests, [](const ApiRequest& request) {
      return request.path.ends_with("/troupejobs");
    });
  };
  EXPECT_EQ(lists(), 1);
  server_.read = {.lines = {R"({"type":"ERROR","object":{"code":410,"reason":"Expired"}})"}};
  Turns(3);
  EXPECT_EQ(lists(), 2);
}

TEST_F(ControllerTest, AnEventOlderThanTheObjectIsIgnored) {
  Run();
  Json older = server_.object;
  older["metadata"]["resourceVersion"] = "4";
  older["metadata"]["generation"] = 2;
  older["spec"]["suspend"] = true;
  server_.read = {.lines = {Json{{"type", "MODIFIED"}, {"object", older}}.dump()}};
  Turns(3);
  EXPECT_TRUE(jobs_.calls.empty());
}

TEST_F(ControllerTest, AnErrorOfTheServerPausesAllRequests) {
  Run();
  server_.answers.push_back({.code = 429, .body = "{}", .retry_after_seconds = 20});
  jobs_.job->state = v1::JOB_STATE_RECOVERING;
  Turns(2);
  const size_t requests = server_.requests.size();
  Turns(10);
  EXPECT_EQ(server_.requests.size(), requests);
  Turns(15);
  EXPECT_EQ(State(), "RECOVERING");
}

// As by a load balancer that resets connections without traffic.
TEST_F(ControllerTest, AWatchThatIsCutAfterMinutesIsOpenedAgainAtOnce) {
  Turns(5);
  for (int i = 0; i < 10; ++i) {
    const size_t watches = server_.watches.size();
    clock_.now += std::chrono::minutes(4);
    server_.read = {.ended = true, .code = HttpCode::kOk, .error = "Connection reset by peer"};
    const MonotonicTime cut = clock_.now;
    while (server_.watches.size() == watches && clock_.now - cut < std::chrono::minutes(2))
      Turns(1);
    EXPECT_LE(clock_.now - cut, std::chrono::seconds(2)) << i;
  }
}

TEST_F(ControllerTest, AMoveIsAnEventAlsoIfItIsOverBeforeItIsSeen) {
  const auto events = [this] {
    std::vector<std::string> notes;
    for (const ApiRequest& request : server_.requests) {
      if (request.method != "POST") continue;
      const Json event = Json::parse(request.body);
      notes.push_back(fmt::format("{} {}: {}", TextOf(event, "type"), TextOf(event, "reason"),
                                  TextOf(event, "note")));
    }
    return notes;
  };
  Run();
  const size_t count = events().size();
  jobs_.job->moves = 1;
  jobs_.job->move_reason = "leaves worker-1, which is draining (SIGTERM), after step 1";
  Turns(2);
  ASSERT_EQ(events().size(), count + 1);
  EXPECT_EQ(events().back(), "Normal Moving: job a, step 1 of 9: " + jobs_.job->move_reason);
  jobs_.job->is_moving = true;
  jobs_.job->state = v1::JOB_STATE_RECOVERING;
  Turns(2);
  EXPECT_EQ(State(), "MOVING");
  jobs_.job->is_moving = false;
  jobs_.job->state = v1::JOB_STATE_RUNNING;
  Turns(2);
  EXPECT_EQ(State(), "RUNNING");
  EXPECT_EQ(events().size(), count + 1) << "the move has been named";
}

TEST_F(ControllerTest, AJobWhoseKeysTheServerHasDroppedIsRejectedUntilTheyAreCorrected) {
  const char* const field = "kubectl.kubernetes.io/last-applied-configuration";
  server_.object["metadata"]["annotations"][field] = R"({"spec": {"job": {"trainig": {}}}})";
  Turns(6);
  EXPECT_EQ(State(), "REJECTED");
  EXPECT_THAT(server_.object["status"].dump(),
              HasSubstr("the API server has dropped spec.job.trainig, which its definition"));
  EXPECT_TRUE(jobs_.calls.empty());
  server_.object["metadata"]["annotations"][field] = R"({"spec": {"job": {}}})";
  server_.object["metadata"]["resourceVersion"] = "60";
  server_.read = {.lines = {Json{{"type", "MODIFIED"}, {"object", server_.object}}.dump()}};
  Turns(5);
  EXPECT_THAT(jobs_.calls, ElementsAre("create u a"));
}

TEST_F(ControllerTest, AChangeThatTheAnswerToAWriteShowsIsTriedAtOnce) {
  Run();
  server_.object["spec"]["suspend"] = true;
  server_.object["metadata"]["generation"] = 2;
  server_.object["metadata"]["resourceVersion"] = "50";
  server_.read = {.lines = {Json{{"type", "MODIFIED"}, {"object", server_.object}}.dump()}};
  Turns(2);
  ASSERT_EQ(jobs_.calls.size(), 1u);
  jobs_.outcomes = {{"u", PermissionDenied("no member")}};
  Turns(3);
  ASSERT_EQ(jobs_.calls.size(), 1u);
  server_.object["metadata"]["deletionTimestamp"] = "2026-11-26T00:00:00Z";
  jobs_.job->state = v1::JOB_STATE_RECOVERING;
  Turns(3);
  EXPECT_EQ(jobs_.calls.size(), 2u);
}

TEST_F(ControllerTest, ConditionsOfOthersAreLeftAloneAndCauseNoWrites) {
  server_.foreign_condition = {{"type", "Admitted"}, {"status", "True"}, {"reason", "Quota"}};
  Run();
  const size_t writes = server_.Writes().size();
  Turns(8);
  EXPECT_EQ(server_.Writes().size(), writes);
  jobs_.job->state = v1::JOB_STATE_RECOVERING;
  Turns(8);
  EXPECT_EQ(server_.Writes().size(), writes + 1);
  for (const ApiRequest& request : server_.requests)
    EXPECT_EQ(request.body.find("Admitted"), std::string::npos) << request.path;
}

TEST_F(ControllerTest, AStatusOfWhichTheServerDropsAPartIsNotWrittenWithoutPause) {
  server_.dropped_field = "restarts";
  Run();
  Turns(100);
  EXPECT_LT(server_.Writes().size(), 15u);
}

TEST_F(ControllerTest, AnObjectOnWhichTheServerFailsHoldsUpNoOther) {
  Json broken = server_.object;
  broken["metadata"]["name"] = "broken";
  broken["metadata"]["uid"] = "b";  // it comes before the other
  broken["metadata"]["finalizers"] = {std::string(kFinalizer)};
  server_.others.push_back(broken);
  Turns(20);
  EXPECT_THAT(jobs_.calls, ElementsAre("create u a"));
}

TEST_F(ControllerTest, AnObjectAboveTheLimitIsFollowedOnceThereIsRoom) {
  Json leaving = server_.object;
  leaving["metadata"]["deletionTimestamp"] = "2026-11-26T00:00:00Z";
  for (const char* const name : {"other", "another"}) {
    leaving["metadata"]["name"] = leaving["metadata"]["uid"] = name;
    server_.others.push_back(leaving);
  }
  Controller small({.space = "lab", .instance = "pod-0", .most_objects = 2}, server_, jobs_,
                   clock_);
  for (int i = 0; i < 5; ++i) small.Turn();
  EXPECT_TRUE(server_.Writes().empty());
  server_.others.erase(server_.others.size() - 1);
  server_.read = {.lines = {Json{{"type", "DELETED"}, {"object", leaving}}.dump()}};
  for (int i = 0; i < 5; ++i) small.Turn();
  EXPECT_THAT(jobs_.calls, ElementsAre("create u a"));
}

TEST_F(ControllerTest, AnInvalidJobIsRejectedOnce) {
  server_.object["spec"]["job"] = {{"trainig", 1}};
  Turns(6);
  EXPECT_EQ(State(), "REJECTED");
  EXPECT_TRUE(jobs_.calls.empty());
  const size_t writes = server_.Writes().size();
  Turns(30);
  EXPECT_EQ(server_.Writes().size(), writes);
}

TEST_F(ControllerTest, TheErrorsOfAJobAreOneLineOfItsCondition) {
  server_.object["spec"]["job"] = {{"trainig", 1}, {"training", {{"stepz\nforged", 2}}}};
  Turns(6);
  const auto message = server_.object["status"]["conditions"][0]["message"].get<std::string>();
  EXPECT_THAT(message, HasSubstr("trainig is an unknown key"));
  EXPECT_THAT(message, HasSubstr("; training.stepz\\nforged is an unknown key"));
  EXPECT_EQ(message.find('\n'), std::string::npos);
}

TEST_F(ControllerTest, ARefusedJobIsTriedAgainAfterFiveMinutes) {
  Turns(4);
  jobs_.outcomes = {{"u", InvalidArgument("no such data")}};
  Turns(290);
  EXPECT_EQ(State(), "REJECTED");
  EXPECT_EQ(jobs_.calls.size(), 1u);
  Turns(20);
  EXPECT_EQ(jobs_.calls.size(), 2u);
}

TEST_F(ControllerTest, AJobAboveALimitIsTriedAgainAfterHalfAMinute) {
  Turns(4);
  jobs_.outcomes = {{"u", ResourceExhausted("too many jobs")}};
  Turns(25);
  EXPECT_EQ(State(), "PENDING");
  EXPECT_EQ(jobs_.calls.size(), 1u);
  Turns(15);
  EXPECT_EQ(jobs_.calls.size(), 2u);
}

TEST_F(ControllerTest, ARejectionHoldsAcrossARestartUntilTheJobIsTriedAgain) {
  server_.object["spec"]["job"] = {{"trainig", 1}};
  Turns(6);
  const Json rejected = server_.object["status"];
  const size_t writes = server_.Writes().size();
  Controller next({.space = "lab", .instance = "pod-1"}, server_, jobs_, clock_);
  for (int i = 0; i < 4; ++i) next.Turn();
  EXPECT_EQ(server_.Writes().size(), writes);
  EXPECT_EQ(server_.object["status"], rejected);
}

}  // namespace
}  // namespace troupe
