#include "cli/job_logs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using std::chrono::steady_clock;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kTestLimit{20};

const std::string kFirst = "2026-11-24T06:37:13.100Z I rank job=a rank=0 epoch=1 first";
const std::string kSecond = "2026-11-24T06:37:13.200Z I rank job=a rank=1 epoch=1 second";
const std::string kThird = "2026-11-24T06:37:13.300Z I rank job=a rank=0 epoch=1 third";
const std::string kFourth = "2026-11-24T06:37:13.400Z I rank job=a rank=1 epoch=1 fourth";

// The job service of a fake coordinator: the n-th look at the job and its logs is `looks[n]`, and
// later ones are the last.
class LoggedJob final : public v1::JobService::Service {
 public:
  struct Look {
    v1::JobState state = v1::JOB_STATE_RUNNING;
    std::vector<std::vector<std::string>> answers;
    grpc::Status status;
    bool interrupts = false;  // Ctrl-C, and the call does not end before its caller has gone
  };
  std::vector<Look> looks;
  std::atomic<size_t> reads{0};
  v1::ReadJobLogsRequest asked;

  grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest* request,
                      v1::GetJobResponse* response) override {
    response->mutable_job()->set_name(request->name());
    response->mutable_job()->set_state(Now().state);
    return grpc::Status::OK;
  }
  grpc::Status ReadJobLogs(grpc::ServerContext* context, const v1::ReadJobLogsRequest* request,
                           grpc::ServerWriter<v1::ReadJobLogsResponse>* writer) override {
    asked = *request;
    const Look& look = Now();
    ++reads;
    for (const auto& lines : look.answers) {
      v1::ReadJobLogsResponse answer;
      for (const std::string& line : lines) answer.add_lines(line);
      writer->Write(answer);
    }
    if (!look.interrupts) return look.status;
    kill(getpid(), SIGINT);
    const auto end = steady_clock::now() + kTestLimit;
    while (!context->IsCancelled() && steady_clock::now() < end) sched_yield();
    return grpc::Status::CANCELLED;
  }

 private:
  const Look& Now() const { return looks[std::min(reads.load(), looks.size() - 1)]; }
};

class JobLogsTest : public testing::Test {
 protected:
  JobLogsTest() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&jobs_);
    server_ = builder.BuildAndStart();
  }

  StatusOr<ExitCode> Run(bool follows, LogOptions options = {}) {
    options.job = "jobs/a";
    Client client = Client::At(fmt::format("127.0.0.1:{}", port_));
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    auto code = follows ? FollowLogs(&client, &interrupt_, options) : PrintLogs(&client, options);
    out_ = testing::internal::GetCapturedStdout();
    err_ = testing::internal::GetCapturedStderr();
    return code;
  }
  StatusOr<ExitCode> Follow(LogOptions options = {}) {
    options.pause = std::chrono::milliseconds(1);
    return Run(true, options);
  }

  InterruptWatch interrupt_;  // before the threads of the server, which inherit the blocked signals
  LoggedJob jobs_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::string out_, err_;
};

TEST_F(JobLogsTest, RanksAreInTheOrderOfTime) {
  jobs_.looks = {{.answers = {{kFirst, kThird}, {kSecond, "  at a frame"}}}};
  EXPECT_EQ(*Run(false), ExitCode::kDone);
  EXPECT_EQ(out_, kFirst + "\n" + kSecond + "\n  at a frame\n" + kThird + "\n");
  EXPECT_FALSE(jobs_.asked.has_rank());
}

TEST_F(JobLogsTest, OneRankKeepsItsOrderAndSelectionsAreOfTheEnd) {
  jobs_.looks = {{.answers = {{kFirst, kThird, kSecond}}}};
  EXPECT_EQ(*Run(false, {.rank = 3}), ExitCode::kDone);
  EXPECT_EQ(out_, kFirst + "\n" + kThird + "\n" + kSecond + "\n") << "its clock went back";
  EXPECT_EQ(jobs_.asked.rank(), 3);
  EXPECT_EQ(*Run(false, {.selection = {.tail = 1}}), ExitCode::kDone);
  EXPECT_EQ(out_, kThird + "\n");
  EXPECT_EQ(*Run(false, {.selection = {.since_ms = LogTime(kSecond)}}), ExitCode::kDone);
  EXPECT_EQ(out_, kSecond + "\n" + kThird + "\n");
}

TEST_F(JobLogsTest, AWorkerThatIsAwayIsAMessageAndPartOfTheJson) {
  const std::string notice = "… the log lines on worker-1 are missing: no connection now";
  jobs_.looks = {{.answers = {{notice}, {kFirst}}}};
  EXPECT_EQ(*Run(false, {.selection = {.tail = 1}}), ExitCode::kDone);
  EXPECT_EQ(out_, kFirst + "\n");
  EXPECT_EQ(err_, notice + "\n");
  EXPECT_EQ(*Run(false, {.json = true}), ExitCode::kDone);
  EXPECT_EQ(out_, fmt::format("{{\"lines\":[\"{}\",\"{}\"]}}\n", notice, kFirst));
}

TEST_F(JobLogsTest, WhatArrivedBeforeAnErrorIsPrinted) {
  jobs_.looks = {{.answers = {{kFirst}}, .status = {grpc::DEADLINE_EXCEEDED, "1 workers"}}};
  EXPECT_EQ(Run(false).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(out_, kFirst + "\n");
  EXPECT_EQ(Run(false, {.json = true}).status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(out_, "");
}

TEST_F(JobLogsTest, FollowingPrintsEachLineOnceUntilTheJobHasEnded) {
  const std::string notice = "… the log lines on worker-1 are missing: no connection now";
  jobs_.looks = {
      {.answers = {{kFirst}, {kSecond}}},
      {.answers = {{notice}, {kFirst}}},
      {.status = {grpc::UNAVAILABLE, "restarting"}},
      {.status = {grpc::UNAVAILABLE, "restarting"}},
      {.answers = {{kFirst, kThird}, {kSecond}}},
      {.state = v1::JOB_STATE_SUCCEEDED, .answers = {{kFirst, kThird}, {kSecond}}},
      {.state = v1::JOB_STATE_SUCCEEDED, .answers = {{kFirst, kThird}, {kSecond, kFourth}}}};
  EXPECT_EQ(*Follow(), ExitCode::kDone);
  EXPECT_EQ(out_, kFirst + "\n" + kSecond + "\n" + kThird + "\n" + kFourth + "\n");
  EXPECT_EQ(jobs_.reads.load(), 7u) << "one read after the end";
  EXPECT_THAT(err_, HasSubstr(notice + "\n"));
  EXPECT_EQ(err_.find("waiting for the logs"), err_.rfind("waiting for the logs")) << err_;
  EXPECT_THAT(err_, HasSubstr("restarting; waiting for the logs\n"));
}

TEST_F(JobLogsTest, FollowingBeginsWithTheSelectedLines) {
  jobs_.looks = {{.answers = {{kFirst, kSecond}}},
                 {.state = v1::JOB_STATE_FAILED, .answers = {{kFirst, kSecond, kThird, kFourth}}}};
  EXPECT_EQ(*Follow({.selection = {.tail = 1}}), ExitCode::kDone);
  EXPECT_EQ(out_, kSecond + "\n" + kThird + "\n" + kFourth + "\n");
}

TEST_F(JobLogsTest, FollowingShowsWhatArrivedBeforeAnError) {
  const grpc::Status late = {grpc::DEADLINE_EXCEEDED, "1 worker did not answer"};
  jobs_.looks = {
      {.answers = {{kFirst}}, .status = late},
      {.answers = {{kFirst, kThird}}, .status = late},
      {.state = v1::JOB_STATE_SUCCEEDED, .answers = {{kFirst, kThird}, {kSecond, kFourth}}}};
  EXPECT_EQ(*Follow(), ExitCode::kDone);
  EXPECT_EQ(out_, kFirst + "\n" + kThird + "\n" + kSecond + "\n" + kFourth + "\n");
}

TEST_F(JobLogsTest, FollowingWaitsForAWorkerThatReconnectsAtTheFirstRead) {
  jobs_.looks = {{.status = {grpc::FAILED_PRECONDITION, "worker-1 is away"}},
                 {.state = v1::JOB_STATE_SUCCEEDED, .answers = {{kFirst}}}};
  EXPECT_EQ(*Follow(), ExitCode::kDone);
  EXPECT_EQ(out_, kFirst + "\n");
  EXPECT_THAT(err_, HasSubstr("worker-1 is away; waiting for the logs\n"));
}

TEST_F(JobLogsTest, TheLimitOfErrorsBeginsWithTheFirstOneAfterASuccess) {
  jobs_.looks = {{.answers = {{kFirst}}},
                 {.status = {grpc::UNAVAILABLE, "restarting"}},
                 {.state = v1::JOB_STATE_SUCCEEDED, .answers = {{kFirst}}}};
  LogOptions options;
  options.pause = std::chrono::milliseconds(100);
  options.away_limit = std::chrono::milliseconds(10);
  EXPECT_EQ(*Run(true, options), ExitCode::kDone) << "the pause is longer than the limit";
}

TEST_F(JobLogsTest, FollowingEndsWithAnErrorThatStaysOrDoesNotPass) {
  jobs_.looks = {{.status = {grpc::FAILED_PRECONDITION, "worker-1 is away"}}};
  EXPECT_EQ(Follow({.away_limit = std::chrono::milliseconds(20)}).status().code(),
            StatusCode::kFailedPrecondition);
  EXPECT_GT(jobs_.reads.load(), 1u);
  jobs_.reads = 0;
  jobs_.looks = {{.answers = {{kFirst}}}, {.status = {grpc::PERMISSION_DENIED, "revoked"}}};
  EXPECT_EQ(Follow().status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(out_, kFirst + "\n");
}

TEST_F(JobLogsTest, WhatIsNotKeptIsStated) {
  jobs_.looks = {{.answers = {{kFirst, kThird}, {kSecond}}}};
  const auto most_bytes = static_cast<int64_t>(kThird.size() + sizeof(LogLine));
  EXPECT_EQ(*Run(false, {.selection = {.most_bytes = most_bytes}}), ExitCode::kDone);
  EXPECT_EQ(out_, kThird + "\n");
  EXPECT_EQ(err_, fmt::format("at most {} B of lines are kept, so that the oldest ones are left "
                              "out: 2\n",
                              most_bytes));
}

TEST_F(JobLogsTest, CtrlCEndsTheWaitForACoordinatorThatIsAway) {
  server_->Shutdown();
  kill(getpid(), SIGINT);
  const auto begin = steady_clock::now();
  EXPECT_EQ(*Follow(), ExitCode::kInterrupted);
  EXPECT_LT(steady_clock::now() - begin, Client::kReconnectLimit);
}

TEST_F(JobLogsTest, FollowingACoordinatorThatCannotBeReachedIsAnErrorAtOnce) {
  server_->Shutdown();
  EXPECT_EQ(Follow().status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(err_, testing::Not(HasSubstr("waiting for the logs")));
}

TEST_F(JobLogsTest, CtrlCEndsARead) {
  jobs_.looks = {{.answers = {{kFirst}}}, {.answers = {{kFirst, kSecond}}, .interrupts = true}};
  EXPECT_EQ(*Follow(), ExitCode::kInterrupted);
  EXPECT_EQ(out_, kFirst + "\n");
}

TEST_F(JobLogsTest, CtrlCEndsThePauseBetweenTwoReads) {
  jobs_.looks = {{.answers = {{kFirst}}}};
  // The pause is the only wait that is as long as this.
  LogOptions options;
  options.pause = kTestLimit;
  const auto begin = steady_clock::now();
  const auto interrupt = [this] {
    const auto end = steady_clock::now() + kTestLimit;
    while (jobs_.reads == 0 && steady_clock::now() < end) sched_yield();
    kill(getpid(), SIGINT);
  };
  std::thread presses(interrupt);
  EXPECT_EQ(*Run(true, options), ExitCode::kInterrupted);
  presses.join();
  EXPECT_LT(steady_clock::now() - begin, kTestLimit);
}

}  // namespace
}  // namespace troupe
