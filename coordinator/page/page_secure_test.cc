// The page of a coordinator with TLS and two namespaces: who sees what, with a certificate and with
// a token.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <signal.h>

#include <chrono>
#include <fstream>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/http/test_http_client.h"
#include "coordinator/access/internal_caller.h"
#include "coordinator/page/page_worker_test.h"
#include "coordinator/service/access_calls_test.h"
#include "coordinator/service/namespaces_watch.h"
#include "coordinator/test_requests.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kNamespacesOfPage[] = R"(
namespaces:
  - name: lab
    members: [viewer/ann, submitter/sam]
    roots: {data: /data/lab, checkpoints: /checkpoints/lab, imports: /imports/lab}
  - name: shop
    members: [viewer/bob]
    roots: {data: /data/shop, checkpoints: /checkpoints/shop, imports: /imports/shop}
)";

constexpr char kNoTrace[] = "as it runs is not shown: </b>\n<span>PERMISSION_DENIED";

std::string PasswordHeaders(const std::string& password) {
  const std::string text = "anybody:" + password;
  std::string encoded(4 * (text.size() / 3 + 1) + 1, '\0');
  const int bytes = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(encoded.data()),
                                    reinterpret_cast<const unsigned char*>(text.data()),
                                    static_cast<int>(text.size()));
  encoded.resize(static_cast<size_t>(bytes));
  return "Host: coordinator.example\r\nAuthorization: Basic " + encoded + "\r\n";
}

class PageSecureTest : public AccessTest {
 protected:
  static void SetUpTestSuite() { signal(SIGPIPE, SIG_IGN); }

  void SetUp() override {
    std::ofstream(Directory("namespaces.yaml")) << kNamespacesOfPage;
    auto file = ReadNamespacesFile(Directory("namespaces.yaml"));
    ASSERT_TRUE(file.ok()) << ToString(file.status());
    ServerOptions options;
    options.page_listen = "127.0.0.1:0";
    options.data_directory = Directory("catalog");
    options.detection_seconds = 30;  // the workers send no heartbeats
    options.tls = Issue(Role::kCoordinator, "main");
    options.namespaces = *std::move(file);
    options.clock = &clock_;
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << ToString(server.status());
    server_ = *std::move(server);
    const std::string url = server_->page_url();
    ASSERT_THAT(url, StartsWith("https://127.0.0.1:"));
    port_ = std::stoi(url.substr(url.rfind(':') + 1));
    Submit("lab.a", "/data/lab/set");
    Submit("shop.b", "/data/shop/set");
  }

  void Submit(const std::string& name, const std::string& data) {
    v1::CreateJobRequest request;
    *request.mutable_job() = PlannableJob(name);
    request.mutable_job()->mutable_data()->set_train(data);
    const Outcome created = CallAny(ChannelOf(Role::kOperator), "/troupe.v1.JobService/CreateJob",
                                    request.SerializeAsString());
    ASSERT_TRUE(created.answered) << created.status.error_message();
  }

  v1::CreateUserTokenResponse TokenOf(const std::string& role, const std::string& name) {
    v1::CreateUserTokenRequest request;
    request.set_name(name);
    request.set_role(role);
    request.set_lifetime_seconds(3600);
    const Outcome outcome =
        CallAny(ChannelOf(Role::kOperator), "/troupe.v1.AccessService/CreateUserToken",
                request.SerializeAsString());
    v1::CreateUserTokenResponse created;
    EXPECT_TRUE(outcome.answered && created.ParseFromString(outcome.response))
        << outcome.status.error_message();
    return created;
  }

  std::string GetWithPassword(const std::string& path, const std::string& password) const {
    return GetWithTls(port_, path, std::nullopt, PasswordHeaders(password)).text;
  }
  std::string GetAs(const std::string& path, const std::string& identity) const {
    return GetWithTls(port_, path, Certify({"spiffe://lab/" + identity}, Now() - 60, Now() + 600),
                      "Host: coordinator.example\r\n")
        .text;
  }
  std::string GetAsStranger(const std::string& path) const {
    return GetWithTls(port_, path, std::nullopt, "Host: coordinator.example\r\n").text;
  }

  // Returns who has traced jobs.
  std::vector<std::string> TracesInAudit() const {
    std::vector<std::string> callers;
    for (const nlohmann::json& record : Records()) {
      if (record.at("rpc") == "/troupe.v1.JobService/TraceJob")
        callers.push_back(record.at("identity"));
    }
    return callers;
  }

  int port_ = 0;
};

TEST_F(PageSecureTest, AStrangerIsAskedForAPasswordAndSeesNothing) {
  const size_t records = Records().size();
  for (const std::string path : {"/", "/jobs/lab.a", "/jobs/missing", "/jobs/lab.a/logs"}) {
    EXPECT_THAT(GetAsStranger(path),
                AllOf(StartsWith("HTTP/1.1 401 "), Not(HasSubstr("lab.a")),
                      HasSubstr("WWW-Authenticate: Basic realm=\"Troupe\", charset=\"UTF-8\"")))
        << path;
  }
  EXPECT_THAT(GetAsStranger("/style.css"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(Records().size(), records) << "every browser begins without a password";
  EXPECT_THAT(GetPlain(port_, "/"), Not(HasSubstr("HTTP/1.1"))) << "without TLS";
}

TEST_F(PageSecureTest, AViewerSeesTheNamespacesOfItsTokenOnly) {
  const std::string ann = TokenOf("viewer", "ann").text(), bob = TokenOf("viewer", "bob").text();
  EXPECT_THAT(GetWithPassword("/", ann),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("/jobs/lab.a"), Not(HasSubstr("shop.b")),
                    HasSubstr("viewer/ann")));
  EXPECT_THAT(GetWithPassword("/", bob), AllOf(HasSubstr("/jobs/shop.b"), Not(HasSubstr("lab.a"))));
  EXPECT_THAT(GetWithPassword("/jobs/lab.a", ann), StartsWith("HTTP/1.1 200 "));
  for (const std::string path : {"/jobs/lab.a", "/jobs/lab.missing", "/jobs/lab.a/logs"}) {
    EXPECT_THAT(GetWithPassword(path, bob), StartsWith("HTTP/1.1 403 ")) << path;
    EXPECT_EQ(Records().back().at("rpc"), "/troupe.v1.JobService/GetJob");
    EXPECT_THAT(Records().back().at("identity").get<std::string>(), HasSubstr(" bob"));
  }
  EXPECT_THAT(GetWithPassword("/jobs/shop.missing", bob), StartsWith("HTTP/1.1 404 "));
}

TEST_F(PageSecureTest, ACertificateNamesTheSameUserAsAToken) {
  EXPECT_THAT(GetAs("/", "viewer/ann"), AllOf(HasSubstr("/jobs/lab.a"), Not(HasSubstr("shop.b"))));
  EXPECT_THAT(GetAs("/", "operator/eve"), AllOf(HasSubstr("/jobs/lab.a"), HasSubstr("shop.b")));
  EXPECT_THAT(GetAs("/jobs/lab.a", "viewer/bob"), StartsWith("HTTP/1.1 403 "));
  // A password is not looked at next to a certificate.
  const std::string text =
      GetWithTls(port_, "/", Certify({"spiffe://lab/viewer/ann"}, Now() - 60, Now() + 600),
                 PasswordHeaders("wrong"))
          .text;
  EXPECT_THAT(text, HasSubstr("/jobs/lab.a"));
}

TEST_F(PageSecureTest, ARoleThatMayNotReadIsRefusedAndRecorded) {
  for (const std::string path : {"/", "/jobs/lab.a", "/jobs/lab.a/logs"}) {
    EXPECT_THAT(GetAs(path, "worker/w"), StartsWith("HTTP/1.1 403 ")) << path;
    ExpectRefusalRecorded("spiffe://lab/worker/w", path == "/" ? "/troupe.v1.JobService/ListJobs"
                                                               : "/troupe.v1.JobService/GetJob");
  }
}

TEST_F(PageSecureTest, AWrongOrRevokedTokenIsRefusedAndRecordedWithoutItsSecret) {
  const v1::CreateUserTokenResponse token = TokenOf("viewer", "ann");
  std::string wrong = token.text();
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  EXPECT_THAT(GetWithPassword("/", wrong),
              AllOf(StartsWith("HTTP/1.1 401 "), HasSubstr("WWW-Authenticate: Basic")));
  ExpectRefusalRecorded("token:" + token.token().id(), "/page");
  EXPECT_THAT(GetWithPassword("/", "guess"), StartsWith("HTTP/1.1 401 "));
  ExpectRefusalRecorded("anonymous", "/page");
  const std::string other = "Host: coordinator.example\r\nAuthorization: Bearer guess\r\n";
  const size_t records = Records().size();
  EXPECT_THAT(GetWithTls(port_, "/", std::nullopt, other).text, StartsWith("HTTP/1.1 401 "));
  EXPECT_EQ(Records().size(), records + 1) << "a header that cannot be read is a guess too";
  ExpectRefusalRecorded("anonymous", "/page");
  EXPECT_THAT(GetWithPassword("/", token.text()), StartsWith("HTTP/1.1 200 "));
  v1::RevokeUserTokenRequest revoke;
  revoke.set_id(token.token().id());
  ASSERT_TRUE(CallAny(ChannelOf(Role::kOperator), "/troupe.v1.AccessService/RevokeUserToken",
                      revoke.SerializeAsString())
                  .answered);
  EXPECT_THAT(GetWithPassword("/", token.text()), StartsWith("HTTP/1.1 401 "));
  const std::string log = Text("catalog/audit.log");
  EXPECT_THAT(log, Not(HasSubstr(wrong.substr(wrong.rfind('~') + 1))));
  EXPECT_THAT(log, Not(HasSubstr("guess")));
}

TEST_F(PageSecureTest, ASubmitterSeesTheScheduleAsItRunsAndAViewerDoesNot) {
  const auto workers = v1::WorkerService::NewStub(ChannelOf(Role::kWorker, "w"));
  PageWorker worker(*workers, "w");
  worker.StartRank();
  worker.Report(1);
  const v1::CreateUserTokenResponse sam = TokenOf("submitter", "sam");
  const std::string ann = TokenOf("viewer", "ann").text();
  const auto end = std::chrono::steady_clock::now() + kPageTestLimit;
  std::string seen;
  while (seen.find("1 of 3") == std::string::npos && std::chrono::steady_clock::now() < end)
    seen = GetWithPassword("/jobs/lab.a", ann);
  EXPECT_THAT(seen, AllOf(HasSubstr("1 of 3"), HasSubstr(kNoTrace)));
  EXPECT_THAT(TracesInAudit(), testing::IsEmpty());
  auto page =
      std::async(std::launch::async, [&] { return GetWithPassword("/jobs/lab.a", sam.text()); });
  worker.AnswerTrace(1);
  EXPECT_THAT(page.get(),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("submitter/sam"), HasSubstr("RUNNING"),
                    Not(HasSubstr("is not shown: ")), Not(HasSubstr("is not known: "))));
  EXPECT_THAT(TracesInAudit(), testing::ElementsAre("token:" + sam.token().id() + " sam"));
  EXPECT_THAT(GetWithPassword("/jobs/lab.a", ann), HasSubstr(kNoTrace));
}

TEST_F(PageSecureTest, ACallOverTlsWithAGuessedSecretIsThatOfItsCertificate) {
  const auto stub = v1::JobService::NewStub(ChannelOf(Role::kViewer, "bob"));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kAccessCallLimit);
  context.AddMetadata(kInternalCallerKey, "guess");
  context.AddMetadata(kViewerKey, "1");
  context.AddMetadata(kViewerCertificateKey,
                      Certify({"spiffe://lab/operator/eve"}, Now() - 60, Now() + 600).certificate);
  v1::GetJobRequest request;
  request.set_name("jobs/lab.a");
  v1::GetJobResponse response;
  const grpc::Status status = stub->GetJob(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
  EXPECT_THAT(status.error_message(), HasSubstr("viewer/bob"));
}

}  // namespace
}  // namespace troupe
