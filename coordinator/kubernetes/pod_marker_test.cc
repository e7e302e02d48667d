#include "coordinator/kubernetes/pod_marker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <utility>

#include "plan/job/message_json.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class PodClock final : public Clock {
 public:
  MonotonicTime Now() const override { return now; }
  int64_t WallNanoseconds() const override { return now.time_since_epoch().count(); }
  MonotonicTime now = MonotonicTime(std::chrono::hours(1));
};

// An API server that accepts every request, unless a test gives it other answers.
class PodServer final : public ApiServer {
 public:
  explicit PodServer(PodClock& clock) : clock_(clock) {}

  ApiAnswer Call(const ApiRequest& request) override {
    requests.push_back(request);
    if (answers.empty()) return {.code = 200, .body = "{}"};
    ApiAnswer answer = std::move(answers.front());
    answers.pop_front();
    return answer;
  }
  void OpenWatch(const std::string& path) override { ADD_FAILURE() << path; }
  void CloseWatch() override {}
  WatchRead ReadWatch(Duration limit) override {
    clock_.now += limit;
    return {};
  }

  // Returns the paths since the last call, without their queries.
  std::vector<std::string> TakePaths() {
    std::vector<std::string> paths;
    for (const ApiRequest& request : requests)
      paths.push_back(request.path.substr(0, request.path.find('?')));
    requests.clear();
    return paths;
  }

  std::deque<ApiAnswer> answers;
  std::vector<ApiRequest> requests;

 private:
  PodClock& clock_;
};

class PodMarkerTest : public ::testing::Test {
 protected:
  void Turns(int count) {
    for (int i = 0; i < count; ++i) marker_.Turn();
  }

  PodClock clock_;
  PodServer server_{clock_};
  StatusOr<std::vector<WorkerUse>> uses_ = std::vector<WorkerUse>{{"w-0", 1, true}};
  PodMarker marker_{"lab", server_, [this] { return uses_; }, clock_};
};

TEST_F(PodMarkerTest, APodIsMarkedOnceForEachChange) {
  Turns(10);
  ASSERT_THAT(server_.requests, SizeIs(1));
  const ApiRequest busy = server_.requests[0];
  EXPECT_EQ(busy.method, "PATCH");
  EXPECT_EQ(busy.path, "/api/v1/namespaces/lab/pods/w-0?fieldManager=troupe-coordinator");
  EXPECT_EQ(busy.content_type, "application/merge-patch+json");
  EXPECT_EQ(Json::parse(busy.body), Json::parse(R"({"metadata": {"annotations": {
      "controller.kubernetes.io/pod-deletion-cost": "1000",
      "karpenter.sh/do-not-disrupt": "true",
      "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}})"));
  uses_->front().is_busy = false;
  Turns(20);
  ASSERT_THAT(server_.requests, SizeIs(2));
  EXPECT_EQ(Json::parse(server_.requests[1].body), Json::parse(R"({"metadata": {"annotations": {
      "controller.kubernetes.io/pod-deletion-cost": "0",
      "karpenter.sh/do-not-disrupt": null,
      "cluster-autoscaler.kubernetes.io/safe-to-evict": null}}})"));
}

TEST_F(PodMarkerTest, AShortRestIsNotWritten) {
  Turns(1);
  uses_->front().is_busy = false;
  Turns(4);
  uses_->front().is_busy = true;
  Turns(20);
  EXPECT_THAT(server_.requests, SizeIs(1));
}

TEST_F(PodMarkerTest, ATurnWritesAFewMarksOnly) {
  uses_->clear();
  for (int i = 0; i < 50; ++i) uses_->push_back({fmt::format("w-{}", i), 1, true});
  const MonotonicTime start = clock_.now;
  for (const size_t expected : {20, 20, 10, 0}) {
    Turns(1);
    EXPECT_THAT(server_.TakePaths(), SizeIs(expected));
  }
  EXPECT_EQ(clock_.now - start, std::chrono::seconds(4));
}

TEST_F(PodMarkerTest, ARefusalOfEverythingPausesAllAndIsWaitedOut) {
  uses_->push_back({"w-1", 1, true});
  for (const int code : {0, 401, 403, 429, 500, 503}) {
    SCOPED_TRACE(code);
    uses_->front().incarnation += 1;
    server_.answers = {{.code = code, .error = "refused", .retry_after_seconds = 10}};
    Turns(10);
    EXPECT_THAT(server_.TakePaths(), ElementsAre("/api/v1/namespaces/lab/pods/w-0"));
    Turns(60);
    EXPECT_THAT(server_.TakePaths(),
                ElementsAre("/api/v1/namespaces/lab/pods/w-0", "/api/v1/namespaces/lab/pods/w-1"));
    (*uses_)[1].incarnation += 1;
  }
}

TEST_F(PodMarkerTest, ARefusalOfOnePodDelaysThatOneOnly) {
  uses_->push_back({"w-1", 1, true});
  server_.answers = {{.code = 422, .body = "{}"}};
  Turns(1);
  EXPECT_THAT(server_.TakePaths(),
              ElementsAre("/api/v1/namespaces/lab/pods/w-0", "/api/v1/namespaces/lab/pods/w-1"));
  Turns(2);
  EXPECT_THAT(server_.TakePaths(), ElementsAre("/api/v1/namespaces/lab/pods/w-0"));
}

TEST_F(PodMarkerTest, AWorkerWithoutAPodIsForgottenUntilItsNextLife) {
  server_.answers = {{.code = 404, .body = "{}"}};
  Turns(100);
  EXPECT_THAT(server_.TakePaths(), SizeIs(1));
  uses_->front().incarnation = 2;
  Turns(1);
  EXPECT_THAT(server_.TakePaths(), SizeIs(1));
}

TEST_F(PodMarkerTest, AnEngineThatDoesNotAnswerIsAskedAgain) {
  uses_ = DeadlineExceeded("the engine has not answered");
  Turns(3);
  EXPECT_THAT(server_.TakePaths(), IsEmpty());
  uses_ = std::vector<WorkerUse>{{"w-0", 1, true}};
  Turns(1);
  EXPECT_THAT(server_.TakePaths(), SizeIs(1));
}

}  // namespace
}  // namespace troupe
