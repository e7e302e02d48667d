#include "base/metrics/metrics_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/http/test_http_client.h"
#include "base/metrics/metric_list.h"
#include "base/security/test_certificates.h"
#include "base/temporary_directory.h"

namespace troupe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class MetricsServerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { signal(SIGPIPE, SIG_IGN); }

  // Serves a process of the cluster lab, with its certificates if `has_tls`.
  void Start(const std::string& listen, bool has_tls) {
    MetricsServerOptions options{.listen = listen,
                                 .health_age = [] { return std::chrono::milliseconds(1500); }};
    if (has_tls) {
      WriteTlsDirectory(directory_.path(), authority_.pem(), authority_.Issue(Role::kWorker, "w"));
      options.tls = *CheckTlsDirectory(directory_.path(), now_);
    }
    metrics_.Set(metric::kInsecure, 1);
    auto server = MetricsServer::Start(metrics_, options);
    ASSERT_TRUE(server.ok()) << ToString(server.status());
    server_ = *std::move(server);
  }
  std::string GetAs(const Identity& reader) const {
    return GetWithTls(server_->port(), "/metrics",
                      authority_.IssueWith({ToUri(reader)}, now_ - 60, now_ + kTestDay))
        .text;
  }

  const int64_t now_ = std::time(nullptr);
  const TestAuthority authority_{"lab"};
  const TemporaryDirectory directory_;
  Metrics metrics_;
  std::unique_ptr<MetricsServer> server_;
};

TEST_F(MetricsServerTest, OnTheLoopbackItIsPlainAlsoForAProcessWithTls) {
  for (const bool has_tls : {false, true}) {
    Start("127.0.0.1:0", has_tls);
    EXPECT_EQ(server_->url(), fmt::format("http://127.0.0.1:{}/metrics", server_->port()));
    const std::string answer = GetPlain(server_->port(), "/metrics");
    EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                              HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8"),
                              HasSubstr("\ntroupe_insecure 1\n")));
  }
}

TEST_F(MetricsServerTest, TheHealthPageHasTheAgeAndCountsItsRequests) {
  Start("127.0.0.1:0", false);
  EXPECT_THAT(
      GetPlain(server_->port(), "/health"),
      AllOf(HasSubstr("\ntroupe_health_age_seconds 1.5\n"),
            HasSubstr("\ntroupe_health_requests_total 1\n"), Not(HasSubstr("troupe_insecure"))));
  EXPECT_THAT(GetPlain(server_->port(), "/health"),
              HasSubstr("\ntroupe_health_requests_total 2\n"));
  EXPECT_THAT(GetPlain(server_->port(), "/other"), StartsWith("HTTP/1.1 404 "));
}

TEST_F(MetricsServerTest, OffTheLoopbackWithoutTlsItIsPlain) {  // the flags require --insecure
  Start("0.0.0.0:0", false);
  EXPECT_THAT(server_->url(), StartsWith("http://0.0.0.0:"));
  EXPECT_THAT(GetPlain(server_->port(), "/metrics"), HasSubstr("troupe_insecure 1"));
}

TEST_F(MetricsServerTest, OffTheLoopbackWithTlsEachRoleGetsItsAnswer) {
  Start("0.0.0.0:0", true);
  EXPECT_EQ(server_->url(), fmt::format("https://0.0.0.0:{}/metrics", server_->port()));
  for (const RoleEntry& entry : kRoles) {
    const std::string answer = GetAs({"lab", entry.role, "x"});
    if (entry.role == Role::kWorker) {
      EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 403 "), HasSubstr("x has the role worker"),
                                Not(HasSubstr("troupe_insecure"))));
    } else {
      EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("troupe_insecure 1")))
          << entry.name;
    }
  }
  EXPECT_THAT(GetAs({"field", Role::kOperator, "x"}),
              AllOf(StartsWith("HTTP/1.1 403 "), HasSubstr("of another cluster than lab")));
  EXPECT_EQ(GetWithTls(server_->port(), "/health", std::nullopt).text, "");
  EXPECT_EQ(GetPlain(server_->port(), "/metrics").find("troupe_insecure"), std::string::npos);
}

TEST_F(MetricsServerTest, OnAllAddressesTheUrlHasTheAnnouncedHost) {
  const auto url = [this](const std::string& listen, const std::string& announced) {
    const auto server =
        MetricsServer::Start(metrics_, {.listen = listen, .announced_host = announced});
    EXPECT_TRUE(server.ok()) << ToString(server.status());
    return server.ok() ? (*server)->url() : "";
  };
  EXPECT_THAT(url("0.0.0.0:0", "10.1.2.3"), StartsWith("http://10.1.2.3:"));
  EXPECT_THAT(url("0.0.0.0:0", "fd00::7"), StartsWith("http://[fd00::7]:"));
  EXPECT_THAT(url("0.0.0.0:0", ""), StartsWith("http://0.0.0.0:"));
  EXPECT_THAT(url("127.0.0.1:0", "10.1.2.3"), StartsWith("http://127.0.0.1:"));
}

TEST_F(MetricsServerTest, AnAddressThatIsTakenIsRefused) {
  Start("127.0.0.1:0", false);
  const auto second =
      MetricsServer::Start(metrics_, {.listen = fmt::format("127.0.0.1:{}", server_->port())});
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace troupe
