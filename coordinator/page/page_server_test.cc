// The page of a coordinator without TLS, over HTTP on the loopback, with a worker's stream played
// by the test.
#include "coordinator/page/page_server.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <future>
#include <memory>
#include <sstream>
#include <string>

#include "base/http/test_http_client.h"
#include "base/temporary_directory.h"
#include "coordinator/access/internal_caller.h"
#include "coordinator/page/page_worker_test.h"
#include "coordinator/service/server.h"
#include "coordinator/test_requests.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class PageServerTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { signal(SIGPIPE, SIG_IGN); }

  void SetUp() override {
    ServerOptions options;
    options.page_listen = "127.0.0.1:0";
    options.data_directory = directory_.Child("catalog");
    options.detection_seconds = 30;  // the workers send no heartbeats
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << ToString(server.status());
    server_ = *std::move(server);
    const std::string url = server_->page_url();
    ASSERT_THAT(url, testing::MatchesRegex("http://127\\.0\\.0\\.1:[0-9]+/"));
    port_ = std::stoi(url.substr(url.rfind(':') + 1));
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    jobs_ = v1::JobService::NewStub(channel_);
    workers_ = v1::WorkerService::NewStub(channel_);
  }

  std::string Get(const std::string& path,
                  const std::string& headers = "Host: 127.0.0.1\r\n") const {
    return GetPlain(port_, path, headers);
  }

  std::string Send(const std::string& request) const {
    const TestConnection connection(port_);
    return connection.Send(request) ? connection.ReadAll() : "";
  }

  void Submit(const std::string& name) {
    v1::CreateJobRequest request;
    *request.mutable_job() = PlannableJob(name);
    v1::CreateJobResponse response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPageTestLimit);
    const grpc::Status status = jobs_->CreateJob(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }

  // Waits until the job has taken the step, and returns the loss that the list of jobs has.
  double AwaitStep(const std::string& name, int64_t step) {
    const auto end = std::chrono::steady_clock::now() + kPageTestLimit;
    while (std::chrono::steady_clock::now() < end) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + kPageTestLimit);
      v1::ListJobsResponse response;
      EXPECT_TRUE(jobs_->ListJobs(&context, {}, &response).ok());
      for (const v1::Job& job : response.jobs()) {
        if (job.name() == "jobs/" + name && job.step() >= step) return job.loss();
      }
    }
    ADD_FAILURE() << name << " did not take step " << step;
    return 0;
  }

  int CountInAudit(const std::string& text) const {
    std::ostringstream log;
    log << std::ifstream(directory_.Child("catalog") + "/audit.log").rdbuf();
    int count = 0;
    for (size_t at = log.str().find(text); at != std::string::npos;
         at = log.str().find(text, at + 1)) {
      ++count;
    }
    return count;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Server> server_;
  int port_ = 0;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::WorkerService::Stub> workers_;
};

TEST_F(PageServerTest, AJobIsShownWhileItWaitsAndWhileItRuns) {
  Submit("a");
  EXPECT_THAT(Get("/"), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("href=\"/jobs/a\"")));
  EXPECT_THAT(Get("/jobs/a"), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("QUEUED")));
  PageWorker worker(*workers_, "worker-0");
  worker.StartRank();
  worker.Report(1);
  worker.Report(2);
  EXPECT_EQ(AwaitStep("a", 2), 0.5);
  auto page = std::async(std::launch::async, [this] { return Get("/jobs/a"); });
  worker.AnswerTrace(2);
  const std::string text = page.get();
  EXPECT_THAT(text, AllOf(HasSubstr("RUNNING"), HasSubstr("2 of 3"), HasSubstr("STARTED")));
  for (const char* missing : {"are incomplete: ", "is not known: ", "is not shown: "})
    EXPECT_THAT(text, Not(HasSubstr(missing)));
  EXPECT_THAT(Get("/"), AllOf(HasSubstr("worker-0"), HasSubstr("RUNNING")));
  // A second look soon after it asks for no trace, which the first one has recorded.
  EXPECT_THAT(Get("/jobs/a"), HasSubstr("2 of 3"));
  EXPECT_EQ(CountInAudit("/troupe.v1.JobService/TraceJob"), 1);
  EXPECT_EQ(CountInAudit("\"identity\":\"page\""), 1);
  worker.Report(3);
  AwaitStep("a", 3);
  EXPECT_THAT(Get("/jobs/a"), AllOf(HasSubstr("SUCCEEDED"), HasSubstr("3 of 3")));
}

TEST_F(PageServerTest, JobsAreSelectedByStateAndNamespace) {
  Submit("a");
  Submit("lab.b");
  const auto shows = [this](const std::string& query, const std::string& job) {
    return Get("/?" + query).find("href=\"/jobs/" + job + "\"") != std::string::npos;
  };
  EXPECT_TRUE(shows("state=queued", "a"));
  EXPECT_FALSE(shows("state=RUNNING", "a"));
  EXPECT_TRUE(shows("namespace=lab", "lab.b"));
  EXPECT_FALSE(shows("namespace=lab", "a"));
  EXPECT_THAT(Get("/?states=RUNNING"), StartsWith("HTTP/1.1 400 "));
  EXPECT_TRUE(shows("%73tate=queued", "a"));
  const std::string refused = Get("/?state=%3Cscript%3Ealert(1)%3C/script%3E");
  EXPECT_THAT(refused, AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("alert(1)"),
                             Not(HasSubstr("<script>alert"))));
}

TEST_F(PageServerTest, LinesOfLogsAreText) {
  Submit("a");
  PageWorker worker(*workers_, "worker-0");
  worker.StartRank();
  for (const std::string path : {"/jobs/a/logs", "/jobs/a/logs?rank=0"}) {
    auto page = std::async(std::launch::async, [this, path] { return Get(path); });
    worker.AnswerLogs("before <script>alert(1)</script> after");
    EXPECT_THAT(page.get(), AllOf(HasSubstr("before &lt;script&gt;alert(1)&lt;/script&gt; after"),
                                  Not(HasSubstr("<script>alert"))));
  }
  EXPECT_THAT(Get("/jobs/a/logs?rank=1"), StartsWith("HTTP/1.1 404 "));
}

TEST_F(PageServerTest, LinesOfLogsAreReadOnceForManyLooks) {
  Submit("a");
  PageWorker worker(*workers_, "worker-0");
  worker.StartRank();
  auto page = std::async(std::launch::async, [this] { return Get("/jobs/a/logs"); });
  worker.AnswerLogs("a shared line");
  EXPECT_THAT(page.get(), HasSubstr("a shared line"));
  EXPECT_THAT(Get("/jobs/a/logs"), HasSubstr("a shared line")) << "the worker answers no more";
}

TEST_F(PageServerTest, TheLogsOfTheMostRanksAreReadToTheirEnd) {
  Submit("a");
  PageWorker worker(*workers_, "worker-0");
  worker.StartRank();
  auto page = std::async(std::launch::async, [this] { return Get("/jobs/a/logs"); });
  worker.AnswerLogs(std::string(1 << 20, 'x'), 16 * 4 + 6);  // 4 MiB of 16 ranks, and protobuf's
  EXPECT_THAT(page.get(), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("xxx"),
                                Not(HasSubstr("<b>The log is "))));
}

TEST_F(PageServerTest, OtherSitesMakeABrowserAskForNothing) {
  Submit("a");
  const std::string host = "Host: 127.0.0.1\r\n";
  const std::string image = "Sec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n";
  for (const std::string path : {"/", "/jobs/a", "/jobs/a/logs"}) {
    EXPECT_THAT(Get(path, host + "Sec-Fetch-Site: cross-site\r\n" + image),
                AllOf(StartsWith("HTTP/1.1 403 "), Not(HasSubstr("/jobs/a"))))
        << path;
  }
  EXPECT_THAT(Get("/icon.svg", host + "Sec-Fetch-Site: same-origin\r\n" + image),
              StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Get("/", host + "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"
                              "Sec-Fetch-Dest: document\r\n"),
              StartsWith("HTTP/1.1 200 "));
}

TEST_F(PageServerTest, AnotherNameOfTheHostGetsNothing) {
  Submit("a");
  for (const std::string host :
       {"", "Host: attacker.example\r\n", "Host: localhost.example:80\r\n"}) {
    for (const std::string path : {"/", "/jobs/a", "/jobs/a/logs", "/style.css"}) {
      EXPECT_THAT(Get(path, host), AllOf(StartsWith("HTTP/1.1 421 "), Not(HasSubstr("/jobs/a"))))
          << host << path;
    }
  }
  EXPECT_THAT(Get("/", "Host: localhost:1\r\n"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(PageServerTest, WhatDoesNotExistIsNotFound) {
  for (const std::string path :
       {"/jobs/missing", "/jobs/missing/logs", "/nothing", "/jobs/../audit.log",
        "/jobs/%2e%2e%2faudit.log", "/jobs/%3Cscript%3E", "/style.css/"}) {
    EXPECT_THAT(Get(path), AllOf(StartsWith("HTTP/1.1 404 "), Not(HasSubstr("<script>")))) << path;
  }
  EXPECT_THAT(Get("/jobs/" + std::string(4000, 'a')), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Get("/" + std::string(20'000, 'a')), StartsWith("HTTP/1.1 431 "));
}

TEST_F(PageServerTest, OnlyGetAndHeadAreServed) {
  const std::string head = Send("HEAD / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  EXPECT_THAT(head, AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("Content-Security-Policy: "),
                          EndsWith("\r\n\r\n")));
  const std::string post = Send("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(post, StartsWith("HTTP/1.1 405 "));
}

TEST_F(PageServerTest, FilesOfThePageAreSentOnce) {
  const std::string style = Get("/style.css");
  EXPECT_THAT(style, AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("text/css")));
  EXPECT_THAT(Get("/page.js"), HasSubstr("text/javascript"));
  EXPECT_THAT(Get("/icon.svg"), HasSubstr("image/svg+xml"));
  const size_t begin = style.find("ETag: ") + 6;
  const std::string tag = style.substr(begin, style.find("\r\n", begin) - begin);
  EXPECT_THAT(Get("/style.css", "Host: localhost\r\nIf-None-Match: " + tag + "\r\n"),
              AllOf(StartsWith("HTTP/1.1 304 "), EndsWith("\r\n\r\n")));
}

TEST_F(PageServerTest, TheServerStopsWhileAPageWaits) {
  Submit("a");
  PageWorker worker(*workers_, "worker-0");
  worker.StartRank();
  worker.Report(1);
  AwaitStep("a", 1);
  auto page = std::async(std::launch::async, [this] { return Get("/jobs/a"); });
  worker.Await(v1::CoordinatorMessage::kTraceRequest);  // it is not answered
  const auto begin = std::chrono::steady_clock::now();
  server_->Stop();
  // The request for the trace would wait for 3 s.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  page.get();
  EXPECT_EQ(server_->page_url(), "");
}

// The secret is that of the process: what a caller sends in its place makes it nobody else.
TEST_F(PageServerTest, ACallFromOutsideIsNoneOfThePage) {
  Submit("a");
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPageTestLimit);
  context.AddMetadata(kInternalCallerKey, "guess");
  context.AddMetadata(kViewerKey, "1");
  v1::CancelJobRequest request;
  request.set_name("jobs/a");
  v1::CancelJobResponse response;
  ASSERT_TRUE(jobs_->CancelJob(&context, request, &response).ok());
  EXPECT_EQ(CountInAudit("\"identity\":\"page\""), 0);
  EXPECT_EQ(CountInAudit("CancelJob"), 1);
}

}  // namespace
}  // namespace troupe
