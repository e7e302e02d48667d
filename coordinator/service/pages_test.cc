// The pages of a coordinator over HTTP, and how it shows that it runs with --insecure.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "base/http/test_http_client.h"
#include "base/security/credentials.h"
#include "base/security/insecure_reminder.h"
#include "base/security/test_certificates.h"
#include "base/temporary_directory.h"
#include "coordinator/service/server.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class PagesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { signal(SIGPIPE, SIG_IGN); }

  void Start(ServerOptions options) {
    server_.reset();
    options.data_directory = directory_.Child("catalog");
    auto server = Server::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << ToString(server.status());
    server_ = *std::move(server);
  }

  // Returns whether the answer to a call is marked.
  bool IsMarked() const {
    const auto stub = v1::JobService::NewStub(grpc::CreateChannel(
        fmt::format("127.0.0.1:{}", server_->port()), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    v1::ListJobsResponse response;
    const grpc::Status status = stub->ListJobs(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return status.ok() && context.GetServerInitialMetadata().contains(kInsecureHeader);
  }

  std::string AuditText() const {
    std::ostringstream text;
    text << std::ifstream(directory_.Child("catalog") + "/audit.log").rdbuf();
    return text.str();
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Server> server_;
};

TEST_F(PagesTest, InsecureShowsInTheMetricsAndInEveryAnswer) {
  for (const bool insecure : {true, false}) {
    Start({.metrics_listen = "127.0.0.1:0", .insecure = insecure});
    EXPECT_EQ(IsMarked(), insecure);
    EXPECT_THAT(GetPlain(server_->metrics_port(), "/metrics"),
                HasSubstr(fmt::format("\ntroupe_insecure {}\n", insecure ? 1 : 0)));
  }
}

TEST_F(PagesTest, MetricsHaveTheDurationOfUnaryCallsByMethodAndStatus) {
  Start({.metrics_listen = "127.0.0.1:0"});
  EXPECT_FALSE(IsMarked());  // it lists the jobs
  EXPECT_THAT(GetPlain(server_->metrics_port(), "/metrics"),
              HasSubstr("troupe_rpc_duration_seconds_count{code=\"OK\","
                        "method=\"troupe.v1.JobService/ListJobs\"} 1\n"));
}

TEST_F(PagesTest, HealthPagesAreForEverybodyAndStateNothingElse) {
  const TestAuthority authority;
  WriteTlsDirectory(directory_.Child("tls"), authority.pem(),
                    authority.Issue(Role::kCoordinator, "c"));
  Start({.health_listen = "0.0.0.0:0",
         .tls = *CheckTlsDirectory(directory_.Child("tls"), std::time(nullptr))});
  for (const char* path : {"/healthz", "/readyz"}) {
    EXPECT_THAT(GetPlain(server_->health_port(), path), EndsWith("\r\n\r\nok\n"));
  }
  for (const char* path : {"/metrics", "/health", "/"}) {
    EXPECT_THAT(GetPlain(server_->health_port(), path), StartsWith("HTTP/1.1 404 "));
  }
}

TEST_F(PagesTest, AServerThatStopsIsAliveAndNotReady) {
  Start({.health_listen = "127.0.0.1:0"});
  EXPECT_THAT(GetPlain(server_->health_port(), "/readyz"), EndsWith("\r\n\r\nok\n"));
  server_->Stop();
  EXPECT_THAT(GetPlain(server_->health_port(), "/readyz"), StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(GetPlain(server_->health_port(), "/healthz"), EndsWith("\r\n\r\nok\n"));
}

TEST_F(PagesTest, MetricsOffTheLoopbackNeedACertificateOfAReader) {
  const TestAuthority authority;
  WriteTlsDirectory(directory_.Child("tls"), authority.pem(),
                    authority.Issue(Role::kCoordinator, "c"));
  Start({.metrics_listen = "0.0.0.0:0",
         .tls = *CheckTlsDirectory(directory_.Child("tls"), std::time(nullptr))});
  const auto get = [&](std::optional<CertifiedKey> holder) {
    return GetWithTls(server_->metrics_port(), "/metrics", holder).text;
  };
  EXPECT_EQ(server_->metrics_url(),
            fmt::format("https://0.0.0.0:{}/metrics", server_->metrics_port()));
  EXPECT_THAT(get(authority.Issue(Role::kViewer, "v")), HasSubstr("\ntroupe_insecure 0\n"));
  EXPECT_THAT(get(authority.Issue(Role::kWorker, "w")), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(AuditText(), AllOf(HasSubstr("\"identity\":\"spiffe://lab/worker/w\""),
                                 HasSubstr("\"rpc\":\"/metrics\",\"outcome\":\"DENIED\"")));
  EXPECT_EQ(get(std::nullopt), "");
  // A revoked reader is refused, and another one is not.
  const CertifiedKey viewer = authority.Issue(Role::kViewer, "gone");
  EXPECT_THAT(get(viewer), HasSubstr("\ntroupe_insecure 0\n"));
  const auto holder = authority.Issue(Role::kOperator, "root");
  WriteTlsDirectory(directory_.Child("root"), authority.pem(), holder);
  const auto stub = v1::AccessService::NewStub(grpc::CreateChannel(
      fmt::format("127.0.0.1:{}", server_->port()),
      TlsChannelCredentialsOf(*CheckTlsDirectory(directory_.Child("root"), std::time(nullptr)))));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  v1::RevokeCertificateRequest request;
  request.set_identity("spiffe://lab/viewer/gone");
  v1::RevokeCertificateResponse response;
  const grpc::Status revoked = stub->RevokeCertificate(&context, request, &response);
  ASSERT_TRUE(revoked.ok()) << revoked.error_message();
  EXPECT_THAT(get(viewer), AllOf(StartsWith("HTTP/1.1 403 "), HasSubstr("revoked")));
  EXPECT_THAT(AuditText(), HasSubstr("\"identity\":\"spiffe://lab/viewer/gone\""));
  EXPECT_THAT(get(authority.Issue(Role::kViewer, "v")), HasSubstr("\ntroupe_insecure 0\n"));
  EXPECT_THAT(GetPlain(server_->metrics_port(), "/metrics"), Not(HasSubstr("troupe_insecure")));
}

}  // namespace
}  // namespace troupe
