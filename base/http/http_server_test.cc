// A server of pages and its clients over the loopback: honest ones, and those that send garbage,
// nothing, or a part.
#include "base/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/http/test_http_client.h"
#include "base/security/certificate.h"
#include "base/security/test_certificates.h"
#include "base/temporary_directory.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::chrono::seconds kWaitMax{30};
constexpr size_t kHugeBytes = 64 << 20;  // more than the system keeps for a client

HttpPage PageOf(const HttpRequest& request) {
  const std::string& path = request.path;
  if (path == "/certificate") return {200, request.certificate};
  if (path == "/large") return {200, std::string(4 << 20, 'x')};
  if (path == "/huge") return {200, std::string(kHugeBytes, 'x')};
  return path == "/a" ? HttpPage{200, "the page"} : NotFoundPage();
}

class HttpServerTest : public testing::Test {
 protected:
  // OpenSSL's clients here write to connections that the server has ended.
  static void SetUpTestSuite() { signal(SIGPIPE, SIG_IGN); }

  void Start(HttpServerOptions options = {}) {
    options.listen = "127.0.0.1:0";
    options.handlers.pages = PageOf;
    auto server = HttpServer::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << ToString(server.status());
    server_ = *std::move(server);
  }
  TlsFiles WriteFiles() const {
    WriteTlsDirectory(directory_.path(), authority_.pem(), holder_);
    return *CheckTlsDirectory(directory_.path(), now_);
  }
  void StartWithTls(HttpLimits limits = {},
                    ClientCertificate clients = ClientCertificate::kRequired) {
    HttpServerOptions options{.tls = WriteFiles(), .client_certificate = clients, .limits = limits};
    options.handlers.admit = [](const std::string& certificate) -> Status {
      TROUPE_ASSIGN_OR_RETURN(const CertificateFacts client, ReadCertificate(certificate));
      return client.identity.role == Role::kViewer ? OkStatus() : PermissionDenied("viewers only");
    };
    Start(std::move(options));
  }
  // Returns the whole answer with the certificate that the page got.
  std::string CertificateSeenOf(const std::optional<CertifiedKey>& holder) const {
    return GetWithTls(port(), "/certificate", holder).text;
  }
  int port() const { return server_->port(); }
  TestAnswer Get(const std::optional<CertifiedKey>& holder) const {
    return GetWithTls(port(), "/a", holder);
  }
  CertifiedKey Viewer() const { return authority_.Issue(Role::kViewer, "v"); }
  void ExpectServes() const { EXPECT_THAT(GetPlain(port(), "/a"), EndsWith("\r\n\r\nthe page")); }

  const int64_t now_ = std::time(nullptr);
  const TestAuthority authority_;
  const CertifiedKey holder_ = authority_.Issue(Role::kWorker, "w");
  const TemporaryDirectory directory_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, PagesAreServedAndOthersAreNotFound) {
  Start();
  EXPECT_THAT(GetPlain(port(), "/a"),
              AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("\r\n\r\nthe page")));
  EXPECT_THAT(GetPlain(port(), "/b"), StartsWith("HTTP/1.1 404 Not Found\r\n"));
  const std::string large = GetPlain(port(), "/large");
  EXPECT_EQ(large.size() - large.find("\r\n\r\n") - 4, size_t{4} << 20);
}

TEST_F(HttpServerTest, ARequestMayComeInPieces) {
  Start();
  const TestConnection connection(port());
  for (const char c : std::string("GET /a HTTP/1.1\r\n\r\n")) ASSERT_TRUE(connection.Send({&c, 1}));
  EXPECT_THAT(connection.ReadAll(), EndsWith("the page"));
}

TEST_F(HttpServerTest, AnAddressThatIsTakenIsRefused) {
  Start();
  const auto second = HttpServer::Start({.listen = fmt::format("127.0.0.1:{}", port())});
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
}

TEST_F(HttpServerTest, GarbageIsAnsweredOrTheConnectionIsClosed) {
  Start();
  const TestConnection garbage(port());
  ASSERT_TRUE(garbage.Send("\x01\x02\x03\r\n\r\n"));
  EXPECT_THAT(garbage.ReadAll(), StartsWith("HTTP/1.1 400 "));
  const TestConnection endless(port());
  endless.Send("GET /" + std::string(2 * kMostHeadBytes, 'a'));
  EXPECT_THAT(endless.ReadAll(), StartsWith("HTTP/1.1 431 "));
  ExpectServes();
}

TEST_F(HttpServerTest, ConnectionsThatSendNothingOrAPartAreClosedAfterTheirTime) {
  Start({.limits = {.request = milliseconds(500)}});
  const TestConnection silent(port());
  const TestConnection half(port());
  ASSERT_TRUE(half.Send("GET /a HTT"));
  EXPECT_TRUE(silent.Ends());
  EXPECT_TRUE(half.Ends());
  ExpectServes();
}

// Each byte would renew a limit of single reads.
TEST_F(HttpServerTest, AByteNowAndThenDoesNotKeepAConnectionOpen) {
  Start({.limits = {.request = milliseconds(500)}});
  const TestConnection slow(port());
  const timeval pause{.tv_sec = 0, .tv_usec = 10'000};
  ASSERT_EQ(setsockopt(slow.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &pause, sizeof pause), 0);
  const auto give_up = steady_clock::now() + kWaitMax;
  bool is_open = true;
  while (is_open && steady_clock::now() < give_up) {
    char byte = 0;
    is_open = slow.Send("a") && recv(slow.descriptor(), &byte, 1, 0) < 0 &&
              (errno == EAGAIN || errno == EWOULDBLOCK);
  }
  EXPECT_FALSE(is_open);
  ExpectServes();
}

TEST_F(HttpServerTest, AClientThatDoesNotReadItsAnswerIsClosedAfterItsTime) {
  Start({.limits = {.request = milliseconds(1000), .answer = milliseconds(200)}});
  const TestConnection deaf(port());
  ASSERT_TRUE(deaf.Send("GET /huge HTTP/1.1\r\n\r\n"));
  ExpectServes();
  // A connection that is closed after a longer time shows that the shorter one has passed.
  EXPECT_TRUE(TestConnection(port()).Ends());
  EXPECT_LT(deaf.ReadAll().size(), kHugeBytes);
}

TEST_F(HttpServerTest, AboveTheLimitTheOldestConnectionMakesRoom) {
  Start({.most_connections = 4});
  std::vector<std::unique_ptr<TestConnection>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(std::make_unique<TestConnection>(port()));
  ExpectServes();
  EXPECT_TRUE(silent.front()->Ends());
}

TEST_F(HttpServerTest, WithTlsTheRoleOfTheClientDecides) {
  StartWithTls();
  EXPECT_THAT(Get(Viewer()).text, EndsWith("\r\n\r\nthe page"));
  const std::string refused = Get(authority_.Issue(Role::kWorker, "w")).text;
  EXPECT_THAT(refused, AllOf(StartsWith("HTTP/1.1 403 Forbidden\r\n"), EndsWith("viewers only\n")));
  const std::string nobody = Get(authority_.IssueWith({}, now_ - 60, now_ + kTestDay)).text;
  EXPECT_THAT(nobody, AllOf(StartsWith("HTTP/1.1 403 "), HasSubstr("has no identity")));
}

TEST_F(HttpServerTest, WithTlsAnOutsiderGetsNoAnswer) {
  StartWithTls();
  EXPECT_EQ(Get(std::nullopt).text, "");
  EXPECT_EQ(Get(TestAuthority("lab").Issue(Role::kViewer, "v")).text, "");
  EXPECT_THAT(GetPlain(port(), "/a"), Not(HasSubstr("HTTP/1.1 200")));
  const std::vector<std::string> uris = {"spiffe://lab/viewer/v"};
  EXPECT_EQ(Get(authority_.IssueWith(uris, now_ - kTestDay, now_ - 60)).text, "");
  EXPECT_EQ(Get(*MakeAuthority("lab", now_)).text, "");
  EXPECT_THAT(Get(Viewer()).text, EndsWith("the page"));
}

TEST_F(HttpServerTest, ThePageGetsTheCertificateOfItsClient) {
  StartWithTls();
  const CertifiedKey viewer = Viewer();
  EXPECT_THAT(CertificateSeenOf(viewer), EndsWith("\r\n\r\n" + viewer.certificate));
  Start();
  EXPECT_THAT(GetPlain(port(), "/certificate"),
              AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("\r\n\r\n")));
}

TEST_F(HttpServerTest, ACertificateThatIsOptionalMayBeAbsentButNotWrong) {
  Start({.tls = WriteFiles(), .client_certificate = ClientCertificate::kOptional});
  EXPECT_THAT(CertificateSeenOf(std::nullopt),
              AllOf(StartsWith("HTTP/1.1 200 "), EndsWith("\r\n\r\n")));
  for (const CertifiedKey& client : {Viewer(), authority_.Issue(Role::kWorker, "w")}) {
    EXPECT_THAT(CertificateSeenOf(client), EndsWith("\r\n\r\n" + client.certificate));
  }
  EXPECT_EQ(CertificateSeenOf(TestAuthority("lab").Issue(Role::kViewer, "v")), "");
  const std::vector<std::string> uris = {"spiffe://lab/viewer/v"};
  EXPECT_EQ(CertificateSeenOf(authority_.IssueWith(uris, now_ - kTestDay, now_ - 60)), "");
  EXPECT_EQ(CertificateSeenOf(*MakeAuthority("lab", now_)), "");
  EXPECT_THAT(GetPlain(port(), "/a"), Not(HasSubstr("HTTP/1.1 200")));
}

TEST_F(HttpServerTest, AnOptionalCertificateThatIsNotAdmittedIsRefused) {
  StartWithTls({}, ClientCertificate::kOptional);
  EXPECT_THAT(Get(Viewer()).text, EndsWith("\r\n\r\nthe page"));
  EXPECT_THAT(Get(authority_.Issue(Role::kWorker, "w")).text, StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(Get(std::nullopt).text, EndsWith("\r\n\r\nthe page"));
}

TEST_F(HttpServerTest, WithTlsACertificateThatIsNotYetValidIsNamedWithBothTimesInTheLog) {
  StartWithTls();
  const int64_t begin = now_ + 180;
  testing::internal::CaptureStderr();
  const TestAnswer answer =
      Get(authority_.IssueWith({"spiffe://lab/viewer/v"}, begin, now_ + kTestDay));
  server_.reset();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(answer.text, "");
  EXPECT_THAT(log, AllOf(HasSubstr("the certificate of spiffe://lab/viewer/v is valid from " +
                                   UtcText(begin)),
                         HasSubstr("and it is 20")));
}

TEST_F(HttpServerTest, WithTlsGarbageAndHalfAHandshakeKeepNobodyFromAnAnswer) {
  StartWithTls({.request = milliseconds(2000)});
  const TestConnection silent(port());
  const TestConnection half(port());
  ASSERT_TRUE(half.Send({"\x16\x03\x01\x02\x00\x01", 6}));  // the begin of a ClientHello
  const TestConnection garbage(port());
  garbage.Send("GET /a HTTP/1.1\r\n\r\n");
  EXPECT_THAT(Get(Viewer()).text, EndsWith("the page"));
  EXPECT_TRUE(garbage.Ends());
  EXPECT_TRUE(half.Ends());
  EXPECT_TRUE(silent.Ends());
}

TEST_F(HttpServerTest, NewCertificatesAreUsedWithoutARestartAndHalfWrittenOnesAreNot) {
  StartWithTls();
  const TlsFiles files = TlsFilesIn(directory_.path());
  const std::string serial = ReadCertificate(holder_.certificate)->serial;
  EXPECT_EQ(Get(Viewer()).server_serial, serial);
  const CertifiedKey renewed = authority_.Issue(Role::kWorker, "w");
  WriteTextFile(files.key, renewed.key);  // until the certificate follows, the pair does not match
  const auto until = steady_clock::now() + milliseconds(1200);  // longer than between two reads
  while (steady_clock::now() < until) ASSERT_EQ(Get(Viewer()).server_serial, serial);
  WriteTextFile(files.certificate, renewed.certificate);
  const std::string next = ReadCertificate(renewed.certificate)->serial;
  const auto give_up = steady_clock::now() + kWaitMax;
  while (Get(Viewer()).server_serial != next && steady_clock::now() < give_up) {
  }
  EXPECT_EQ(Get(Viewer()).server_serial, next);
}

TEST_F(HttpServerTest, AnAuthorityThatIsReplacedNoLongerVouchesForClients) {
  StartWithTls();
  EXPECT_THAT(Get(Viewer()).text, EndsWith("the page"));
  const TestAuthority second("lab");
  WriteTlsDirectory(directory_.path(), second.pem(), second.Issue(Role::kWorker, "w"));
  const auto give_up = steady_clock::now() + kWaitMax;
  while (!Get(Viewer()).text.empty() && steady_clock::now() < give_up) {
  }
  EXPECT_EQ(Get(Viewer()).text, "");
  EXPECT_THAT(Get(second.Issue(Role::kViewer, "v")).text, EndsWith("the page"));
}

}  // namespace
}  // namespace troupe
