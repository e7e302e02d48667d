// A controller whose API server and jobs are those of a test.
#ifndef TROUPE_COORDINATOR_KUBERNETES_CONTROLLER_TEST_H_
#define TROUPE_COORDINATOR_KUBERNETES_CONTROLLER_TEST_H_

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/kubernetes/controller.h"

namespace troupe {

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
    std::vector<std::optional<JobFacts>> facts;
    for (const JobOfObject& object : objects)
      facts.push_back(unknown.contains(object.uid) ? std::nullopt : job);
    return facts;
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
  std::set<std::string> unknown;  // objects without a job
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

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_KUBERNETES_CONTROLLER_TEST_H_
