#include "coordinator/kubernetes/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <utility>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SteppedClock final : public Clock {
 public:
  MonotonicTime Now() const override { return now; }
  int64_t WallNanoseconds() const override { return now.time_since_epoch().count(); }
  MonotonicTime now = MonotonicTime(std::chrono::hours(1));
};

// An API server with one object, whose status it stores. Lines of a watch are those of a test.
class ScriptedServer final : public ApiServer {
 public:
  explicit ScriptedServer(SteppedClock& clock) : clock_(clock) {}

  ApiAnswer Call(const ApiRequest& request) override {
    requests.push_back(request);
    if (!answers.empty()) {
      ApiAnswer answer = std::move(answers.front());
      answers.pop_front();
      return answer;
    }
    if (request.method == "POST") return {.code = 201, .body = request.body};
    if (request.path.ends_with("/troupejobs")) {
      Json items = others;
      if (!object.is_null()) items.push_back(object);
      return Ok({{"items", items}, {"metadata", {{"resourceVersion", "5"}}}});
    }
    if (request.method == "PATCH" && refusal) return *refusal;
    for (const Json& item : others) {
      const std::string path = "/troupejobs/" + TextOf(item["metadata"], "name");
      if (request.path.find(path) != std::string::npos) return {.code = 500, .body = "{}"};
    }
    if (request.method == "PATCH") Patch(request);
    return Ok(object);
  }
  void OpenWatch(const std::string& path) override {
    watches.push_back(path);
    if (each_watch) read = *each_watch;
  }
  void CloseWatch() override { ++closed; }
  WatchRead ReadWatch(Duration limit) override {
    if (!read.ended) clock_.now += limit;
    return std::exchange(read, {});
  }

  // Returns the paths of the writes so far, without their queries.
  std::vector<std::string> Writes() const {
    std::vector<std::string> paths;
    for (const ApiRequest& request : requests) {
      if (request.method == "PATCH")
        paths.push_back(request.path.substr(0, request.path.find('?')));
    }
    return paths;
  }

  Json object;
  Json others = Json::array();       // further objects, on which the server fails
  Json foreign_condition;            // null: none
  std::string dropped_field;         // the server does not store this field of the status
  std::deque<ApiAnswer> answers;     // instead of those above
  std::optional<ApiAnswer> refusal;  // to writes
  WatchRead read;
  std::optional<WatchRead> each_watch;  // a watch sends this as soon as it is open
  std::vector<ApiRequest> requests;
  std::vector<std::string> watches;
  int closed = 0;

 private:
  static ApiAnswer Ok(const Json& json) { return {.code = 200, .body = json.dump()}; }

  void Patch(const ApiRequest& request) {
    const Json body = Json::parse(request.body);
    if (body.is_array()) {
      object["metadata"]["finalizers"] =
          body[1]["op"] == "remove" ? Json::array() : body[1]["value"];
    } else {
      object["status"] = body["status"];
      object["status"].erase(dropped_field);
      if (!foreign_condition.is_null()) object["status"]["conditions"].push_back(foreign_condition);
    }
    object["metadata"]["resourceVersion"] = std::to_string(++version_);
  }

  SteppedClock& clock_;
  int version_ = 10;
};

class ScriptedJobs final : public JobCalls {
 public:
  StatusOr<std::vector<std::optional<JobFacts>>> Look(
      const std::vector<JobOfObject>& objects) override {
    ++looks;
    return std::vector<std::optional<JobFacts>>(objects.size(), job);
  }
  bool HasRoom() const override { return true; }
  void Create(const std::string& uid, const v1::JobSpec& spec) override {
    calls.push_back("create " + uid + " " + spec.name());
  }
  void Cancel(const std::string& uid, const std::string& name, bool checkpoint) override {
    calls.push_back((checkpoint ? "cancel --checkpoint " : "cancel ") + name);
  }
  void Resume(const std::string& uid, const std::string& name) override {
    calls.push_back("resume " + name);
  }
  void Delete(const std::string& uid, const std::string& name) override {
    calls.push_back("delete " + name);
  }
  std::vector<JobOutcome> TakeOutcomes() override { return std::exchange(outcomes, {}); }

  std::optional<JobFacts> job;
  std::vector<JobOutcome> outcomes;
  std::vector<std::string> calls;
  int looks = 0;
};

class ControllerTest : public ::testing::Test {
 protected:
  ControllerTest() {
    server_.object = {{"metadata",
                       {{"name", "a"},
                        {"namespace", "lab"},
                        {"uid", "u"},
                        {"generation", 1},
                        {"resourceVersion", "3"}}},
                      {"spec", {{"job", Json::object()}}}};
  }

  void Turns(int count) {
    for (int i = 0; i < count; ++i) controller_.Turn();
  }

  // Adopts a job that runs.
  void Run() {
    server_.object["metadata"]["finalizers"] = {std::string(kFinalizer)};
    jobs_.job = JobFacts{.name = "a",
                         .state = v1::JOB_STATE_RUNNING,
                         .has_ranks = true,
                         .has_folder = true,
                         .step = 1,
                         .steps = 9};
    Turns(4);
  }

  void SendDeletion() {
    server_.object["metadata"]["deletionTimestamp"] = "2026-11-26T00:00:00Z";
    server_.object["metadata"]["resourceVersion"] = "90";
    server_.read = {.lines = {Json{{"type", "MODIFIED"}, {"object", server_.object}}.dump()}};
  }

  std::string State() { return server_.object["status"]["state"].get<std::string>(); }

  SteppedClock clock_;
  ScriptedServer server_{clock_};
  ScriptedJobs jobs_;
  Controller controller_{{.space = "lab", .instance = "pod-0"}, server_, jobs_, clock_};
};

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

TEST_F(ControllerTest, ADeletionThatIsSentAgainIsNotThatOfALaterObject) {
  Run();
  Json former = server_.object;
  former["metadata"]["resourceVersion"] = "2";
  server_.read = {.lines = {Json{{"type", "DELETED"}, {"object", former}}.dump()}};
  Turns(2);
  jobs_.job->state = v1::JOB_STATE_RECOVERING;
  Turns(2);
  EXPECT_EQ(State(), "RECOVERING");
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

TEST_F(ControllerTest, ADeletedObjectIsReleasedWhenItsJobIsGone) {
  Run();
  SendDeletion();
  Turns(2);
  EXPECT_THAT(jobs_.calls, ElementsAre("cancel --checkpoint a"));
  jobs_.outcomes = {{"u", OkStatus()}};
  jobs_.job->state = v1::JOB_STATE_CANCELLED;
  Turns(2);
  EXPECT_THAT(jobs_.calls, ElementsAre("cancel --checkpoint a", "delete a"));
  jobs_.outcomes = {{"u", OkStatus()}};
  jobs_.job.reset();
  Turns(3);
  EXPECT_EQ(server_.object["metadata"]["finalizers"], Json::array());
}

TEST_F(ControllerTest, AnObjectThatIsDeletedWhileItsJobIsRefusedIsReleasedAtOnce) {
  Turns(4);
  ASSERT_THAT(jobs_.calls, ElementsAre("create u a"));
  SendDeletion();
  Turns(2);
  EXPECT_NE(server_.object["metadata"]["finalizers"], Json::array()) << "the call has not ended";
  jobs_.outcomes = {{"u", InvalidArgument("no such data")}};
  Turns(4);
  EXPECT_EQ(server_.object["metadata"]["finalizers"], Json::array());
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
