// Workers get and renew certificates, over the loopback: the attempts to get one that is not due
// are refused by name and recorded.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/audit/audit_chain.h"
#include "base/clock.h"
#include "base/security/authority.h"
#include "base/security/authority_files.h"
#include "base/security/certificate.h"
#include "base/security/credentials.h"
#include "base/security/join_token.h"
#include "base/security/signing_request.h"
#include "base/temporary_directory.h"
#include "coordinator/service/enrollment_service.h"
#include "coordinator/service/server.h"
#include "coordinator/test_clock.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kEnrollmentCallLimit = std::chrono::seconds(30);
constexpr char kJoin[] = "/troupe.v1.EnrollmentService/Join";

std::string FileText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class EnrollmentServiceTest : public ::testing::Test {
 protected:
  EnrollmentServiceTest() {
    const Status made = WriteNewAuthority(Directory("authority"), "lab", Seconds());
    EXPECT_TRUE(made.ok()) << ToString(made);
    trusted_ = FileText(Directory("authority/ca.pem"));
    coordinator_ = Issue(Role::kCoordinator, "main");
    operator_ = Issue(Role::kOperator, "ann");
    Start(true);
  }

  static int64_t Seconds() { return WallSeconds(SystemClock()); }
  std::string Directory(const std::string& name) const { return directory_.Child(name); }

  TlsFiles Issue(Role role, const std::string& name) const {
    const std::string output = Directory(fmt::format("{}-{}", RoleName(role), name));
    const auto issued = IssueTlsDirectory(
        Directory("authority"), {.role = role, .name = name, .days = 1}, output, Seconds());
    EXPECT_TRUE(issued.ok()) << ToString(issued.status());
    return *CheckTlsDirectory(output, Seconds());
  }

  void Start(bool signs) {
    server_.reset();
    ServerOptions options;
    options.data_directory = Directory("catalog");
    options.tls = coordinator_;
    options.clock = &clock_;
    if (signs)
      options.enrollment =
          EnrollmentOptions{.authority = Directory("authority"), .certificate_seconds = 3600};
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << ToString(server.status());
    server_ = *std::move(server);
  }

  // Calls `method` (a lambda of stub and context) on a connection of its own.
  template <typename Method>
  grpc::Status Call(const std::shared_ptr<grpc::ChannelCredentials>& credentials, Method method) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto channel = grpc::CreateCustomChannel(server_->address(), credentials, arguments);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kEnrollmentCallLimit);
    return method(*v1::EnrollmentService::NewStub(channel), &context);
  }
  std::shared_ptr<grpc::ChannelCredentials> Anonymous() const {
    return AnonymousChannelCredentials(trusted_, "lab");
  }

  grpc::Status CreateToken(const v1::CreateJoinTokenRequest& request,
                           v1::CreateJoinTokenResponse* response) {
    return Call(TlsChannelCredentialsOf(operator_), [&](auto& stub, auto* context) {
      return stub.CreateJoinToken(context, request, response);
    });
  }
  JoinToken NewToken(const std::string& worker = "", int64_t lifetime = 0) {
    v1::CreateJoinTokenRequest request;
    request.set_worker(worker);
    request.set_lifetime_seconds(lifetime);
    v1::CreateJoinTokenResponse response;
    const grpc::Status made = CreateToken(request, &response);
    EXPECT_TRUE(made.ok()) << made.error_message();
    return *ParseJoinToken(response.token());
  }

  grpc::Status Join(const std::string& token, const std::string& worker,
                    const std::string& certificate_request, v1::JoinResponse* response) {
    v1::JoinRequest request;
    request.set_token(token);
    request.set_worker(worker);
    request.set_certificate_request(certificate_request);
    return Call(Anonymous(),
                [&](auto& stub, auto* context) { return stub.Join(context, request, response); });
  }
  grpc::Status Join(const std::string& token, const std::string& worker = "worker-0") {
    v1::JoinResponse response;
    return Join(token, worker, MakeSigningRequest()->request, &response);
  }
  grpc::Status Join(const JoinToken& token, const std::string& worker = "worker-0") {
    return Join(ToText(token), worker);
  }

  grpc::Status Renew(const TlsFiles& caller, const std::string& certificate_request,
                     v1::RenewResponse* response) {
    v1::RenewRequest request;
    request.set_certificate_request(certificate_request);
    return Call(TlsChannelCredentialsOf(caller),
                [&](auto& stub, auto* context) { return stub.Renew(context, request, response); });
  }

  // Joins with a new token into the directory, and returns its files.
  TlsFiles Joined(const std::string& worker, const std::string& directory) {
    const auto made = MakeSigningRequest();
    const std::string token = ToText(NewToken(worker));
    v1::JoinResponse response;
    grpc::Status joined;
    const auto give_up = std::chrono::steady_clock::now() + kEnrollmentCallLimit;
    do {  // UNAVAILABLE in the second of a revocation
      joined = Join(token, "", made->request, &response);
    } while (joined.error_code() == grpc::StatusCode::UNAVAILABLE &&
             std::chrono::steady_clock::now() < give_up);
    EXPECT_TRUE(joined.ok()) << joined.error_message();
    const auto stored =
        StoreTlsDirectory(Directory(directory), {"lab", Role::kWorker, worker},
                          {response.authorities(), response.certificate(), made->key}, Seconds());
    EXPECT_TRUE(stored.ok()) << ToString(stored.status());
    return *CheckTlsDirectory(Directory(directory), Seconds());
  }
  // Renews the worker's certificate into the directory, and returns its files.
  TlsFiles Renewed(const TlsFiles& former, const std::string& directory) {
    const auto made = MakeSigningRequest();
    v1::RenewResponse response;
    const grpc::Status renewal = Renew(former, made->request, &response);
    EXPECT_TRUE(renewal.ok()) << renewal.error_message();
    const auto stored = StoreTlsDirectory(Directory(directory), former.identity,
                                          {trusted_, response.certificate(), made->key}, Seconds());
    EXPECT_TRUE(stored.ok()) << ToString(stored.status());
    return *CheckTlsDirectory(Directory(directory), Seconds());
  }

  grpc::Status Revoke(const v1::RevokeCertificateRequest& request,
                      v1::RevokeCertificateResponse* response) {
    const auto channel =
        grpc::CreateChannel(server_->address(), TlsChannelCredentialsOf(operator_));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kEnrollmentCallLimit);
    return v1::AccessService::NewStub(channel)->RevokeCertificate(&context, request, response);
  }

  static CertificateFacts FactsOf(const std::string& certificate) {
    const auto facts = ReadCertificate(certificate);
    EXPECT_TRUE(facts.ok()) << ToString(facts.status());
    return *facts;
  }

  // The last record of the audit log, whose chain is checked.
  nlohmann::json LastRecord() const {
    std::istringstream lines(FileText(Directory("catalog/audit.log")));
    AuditHead head;
    std::string last;
    for (std::string line; std::getline(lines, line); last = line)
      EXPECT_TRUE(FollowAuditLine(line, &head).ok()) << line;
    return nlohmann::json::parse(last);
  }

  // Expects that the join was refused so, and that this is recorded.
  void ExpectRefused(const grpc::Status& refused, grpc::StatusCode code,
                     const std::string& reason) const {
    EXPECT_EQ(refused.error_code(), code) << refused.error_message();
    EXPECT_THAT(refused.error_message(), HasSubstr(reason));
    const nlohmann::json record = LastRecord();
    EXPECT_EQ(record.at("rpc"), kJoin);
    EXPECT_EQ(record.at("outcome"), "DENIED");
    EXPECT_THAT(record.at("identity"), HasSubstr("127.0.0.1:"));
    EXPECT_THAT(record.at("reason").get<std::string>(), HasSubstr(reason));
  }

  const TemporaryDirectory directory_;
  std::string trusted_;  // the authority that has signed the coordinator's certificate
  TlsFiles coordinator_, operator_;
  ShiftedClock clock_;  // the server's
  std::unique_ptr<Server> server_;
};

TEST_F(EnrollmentServiceTest, AWorkerJoinsAndRenewsItsOwnCertificate) {
  v1::GetAuthorityResponse authority;
  const grpc::Status got = Call(UnverifiedChannelCredentials(), [&](auto& stub, auto* context) {
    return stub.GetAuthority(context, v1::GetAuthorityRequest(), &authority);
  });
  ASSERT_TRUE(got.ok()) << got.error_message();
  EXPECT_EQ(authority.authorities(), trusted_);

  const auto made = MakeSigningRequest();
  v1::JoinResponse joined;
  const grpc::Status join = Join(ToText(NewToken("worker-0")), "", made->request, &joined);
  ASSERT_TRUE(join.ok()) << join.error_message();
  EXPECT_EQ(LastRecord().at("outcome"), "ALLOWED");
  EXPECT_EQ(LastRecord().at("target"), "workers/worker-0");
  const auto facts = ReadCertificate(joined.certificate());
  ASSERT_TRUE(facts.ok()) << ToString(facts.status());
  EXPECT_EQ(ToUri(facts->identity), "spiffe://lab/worker/worker-0");
  EXPECT_NEAR(static_cast<double>(facts->not_after), static_cast<double>(Seconds() + 3600), 60);
  const std::string tls = Directory("joined");
  const auto stored = StoreTlsDirectory(
      tls, facts->identity, {joined.authorities(), joined.certificate(), made->key}, Seconds());
  ASSERT_TRUE(stored.ok()) << ToString(stored.status());

  const TlsFiles worker = *CheckTlsDirectory(tls, Seconds());
  const auto next = MakeSigningRequest();
  v1::RenewResponse renewed;
  const grpc::Status renewal = Renew(worker, next->request, &renewed);
  ASSERT_TRUE(renewal.ok()) << renewal.error_message();
  const auto renewed_facts = ReadCertificate(renewed.certificate());
  ASSERT_TRUE(renewed_facts.ok()) << ToString(renewed_facts.status());
  EXPECT_EQ(renewed_facts->identity, facts->identity);
  EXPECT_NE(renewed_facts->serial, facts->serial);
  EXPECT_TRUE(CheckKeyBelongs(next->key, renewed.certificate()).ok());
  EXPECT_EQ(LastRecord().at("identity"), "spiffe://lab/worker/worker-0");

  const grpc::Status same = Renew(worker, made->request, &renewed);
  EXPECT_EQ(same.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(same.error_message(), HasSubstr("the former key"));
}

TEST_F(EnrollmentServiceTest, ARevokedWorkerKeepsNoCertificateAndJoinsAgain) {
  const TlsFiles old = Joined("worker-0", "old");
  v1::RenewResponse renewed;
  ASSERT_TRUE(Renew(old, MakeSigningRequest()->request, &renewed).ok());
  // If the worker is revoked while it renews, the new certificate is refused as the old one is: it
  // does not begin after the revocation.
  EXPECT_LE(FactsOf(renewed.certificate()).not_before, Seconds() - kMostClockSkew);

  v1::RevokeCertificateRequest request;
  request.set_identity("spiffe://lab/worker/worker-0");
  v1::RevokeCertificateResponse revoked;
  const grpc::Status revocation = Revoke(request, &revoked);
  ASSERT_TRUE(revocation.ok()) << revocation.error_message();
  const grpc::Status refused = Renew(old, MakeSigningRequest()->request, &renewed);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(refused.error_message(), HasSubstr("revoked"));

  // An operator lets the worker join again. The certificate and its renewals are accepted at once,
  // although others are dated back by five minutes.
  const TlsFiles joined = Joined("worker-0", "new");
  const int64_t begin = FactsOf(FileText(joined.certificate)).not_before;
  EXPECT_GT(begin, revoked.revocation().revoked());
  const grpc::Status renewal = Renew(joined, MakeSigningRequest()->request, &renewed);
  ASSERT_TRUE(renewal.ok()) << renewal.error_message();
  EXPECT_EQ(FactsOf(renewed.certificate()).not_before, begin);
}

TEST_F(EnrollmentServiceTest, ARevokedSerialNumberAlsoRefusesWhatItWasRenewedTo) {
  const TlsFiles first = Joined("worker-0", "first");
  const TlsFiles second = Renewed(first, "second"), third = Renewed(second, "third");
  const TlsFiles other = Renewed(Joined("worker-1", "joined"), "other");
  v1::RevokeCertificateRequest request;
  request.set_serial(FactsOf(FileText(first.certificate)).serial);
  v1::RevokeCertificateResponse revoked;
  const grpc::Status revocation = Revoke(request, &revoked);
  ASSERT_TRUE(revocation.ok()) << revocation.error_message();
  for (const TlsFiles& files : {first, second, third}) {
    v1::RenewResponse renewed;
    const grpc::Status refused = Renew(files, MakeSigningRequest()->request, &renewed);
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAUTHENTICATED) << refused.error_message();
    EXPECT_THAT(refused.error_message(), HasSubstr("was revoked"));
  }
  Renewed(other, "other again");
  Renewed(Joined("worker-0", "joined again"), "renewed again");
}

TEST_F(EnrollmentServiceTest, OnlyWorkersRenew) {
  v1::RenewResponse response;
  const std::string request = MakeSigningRequest()->request;
  EXPECT_EQ(Renew(operator_, request, &response).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  const grpc::Status anonymous = Call(Anonymous(), [&](auto& stub, auto* context) {
    return stub.Renew(context, v1::RenewRequest(), &response);
  });
  EXPECT_EQ(anonymous.error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(EnrollmentServiceTest, ATokenIsUsedOnceAlsoAfterARestart) {
  const JoinToken token = NewToken();
  const grpc::Status joined = Join(token, "worker-0");
  EXPECT_TRUE(joined.ok()) << joined.error_message();
  ExpectRefused(Join(token, "worker-1"), grpc::StatusCode::PERMISSION_DENIED, "was used at");
  Start(true);
  ExpectRefused(Join(token, "worker-1"), grpc::StatusCode::PERMISSION_DENIED, "was used at");
}

TEST_F(EnrollmentServiceTest, OfTwoConcurrentUsesOneSucceeds) {
  const JoinToken token = NewToken();
  std::atomic<int> joined = 0, refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const grpc::Status status = Join(token, fmt::format("worker-{}", i));
      if (status.ok()) ++joined;
      if (status.error_code() == grpc::StatusCode::PERMISSION_DENIED) ++refused;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(joined, 1);
  EXPECT_EQ(refused, 3);
}

TEST_F(EnrollmentServiceTest, ATokenExpires) {
  const JoinToken token = NewToken("", 60);
  clock_.shift_seconds = 61;
  ExpectRefused(Join(token), grpc::StatusCode::PERMISSION_DENIED, "expired at");
}

TEST_F(EnrollmentServiceTest, ForeignDamagedAndWrongTokensAreRefused) {
  const JoinToken token = NewToken("worker-0");
  const auto code = grpc::StatusCode::INVALID_ARGUMENT;
  ExpectRefused(Join(std::string("x")), code, "it is not a join token");
  ExpectRefused(Join(std::string(20000, 'x')), code, "it is too long");
  JoinToken foreign = token;
  foreign.cluster = "other";
  ExpectRefused(Join(foreign), code, "is for the cluster other, and this is lab");
  foreign = token;
  foreign.authority_hash = std::string(64, '0');
  ExpectRefused(Join(foreign), code, "was made with another authority");
  ExpectRefused(Join(token, "worker-1"), grpc::StatusCode::PERMISSION_DENIED,
                "for the worker \"worker-0\", not for \"worker-1\"");
  EXPECT_TRUE(Join(token).ok());
}

TEST_F(EnrollmentServiceTest, WrongSecretsAreLimited) {
  const JoinToken token = NewToken();
  JoinToken guess = token;
  guess.secret = std::string(64, '0');
  for (int i = 0; i < 10; ++i) {
    ExpectRefused(Join(guess), grpc::StatusCode::PERMISSION_DENIED,
                  "it is not known, or its secret is wrong");
  }
  EXPECT_EQ(Join(guess).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(Join(token).ok());
}

TEST_F(EnrollmentServiceTest, ARequestThatIsNotAcceptedLeavesTheToken) {
  const JoinToken token = NewToken();
  v1::JoinResponse response;
  const auto refuse = [&](const std::string& request, const std::string& worker,
                          const std::string& reason) {
    ExpectRefused(Join(ToText(token), worker, request, &response),
                  grpc::StatusCode::INVALID_ARGUMENT, reason);
  };
  const std::string good = MakeSigningRequest()->request;
  refuse("", "worker-0", "no whole certificate request");
  refuse(std::string(20000, 'x'), "worker-0", "above the limit of 16384");
  refuse(good, "", "state the name");
  refuse(good, "a/b", "a/b");
  // A byte of the key or of the signature is another.
  std::string damaged = good;
  char& byte = damaged[damaged.size() - 60];
  byte = byte == 'A' ? 'B' : 'A';
  ExpectRefused(Join(ToText(token), "worker-0", damaged, &response),
                grpc::StatusCode::INVALID_ARGUMENT, "");
  EXPECT_TRUE(Join(token).ok());
}

TEST_F(EnrollmentServiceTest, BadRequestsForTokensAreRefused) {
  v1::CreateJoinTokenResponse response;
  v1::CreateJoinTokenRequest request;
  for (const int64_t lifetime : {int64_t{-1}, int64_t{86401}}) {
    request.set_lifetime_seconds(lifetime);
    const grpc::Status refused = CreateToken(request, &response);
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(refused.error_message(), HasSubstr("lifetime_seconds"));
  }
  request.set_lifetime_seconds(60);
  request.set_worker("a/b");
  EXPECT_THAT(CreateToken(request, &response).error_message(), HasSubstr("\"a/b\""));
  EXPECT_EQ(response.token(), "");
}

TEST_F(EnrollmentServiceTest, WithoutAnAuthorityAllCallsNameTheFlag) {
  const JoinToken token = NewToken();
  const TlsFiles worker = Issue(Role::kWorker, "worker-0");
  Start(false);
  v1::GetAuthorityResponse authority;
  v1::CreateJoinTokenResponse created;
  v1::RenewResponse renewed;
  for (const grpc::Status& refused :
       {Join(token), CreateToken({}, &created), Renew(worker, "", &renewed),
        Call(Anonymous(), [&](auto&stub, auto*context) {
          return stub.GetAuthority(context, v1::GetAuthorityRequest(), &authority);
        })}) {
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_THAT(refused.error_message(), HasSubstr("--authority"));
  }
  EXPECT_EQ(authority.authorities(), "");
}

TEST_F(EnrollmentServiceTest, AnAuthorityThatIsReplacedSignsWithoutARestart) {
  const JoinToken former = NewToken();
  std::filesystem::rename(Directory("authority"), Directory("former"));
  EXPECT_EQ(Join(former).error_code(), grpc::StatusCode::UNAVAILABLE);
  ASSERT_TRUE(WriteNewAuthority(Directory("authority"), "lab", Seconds()).ok());
  const std::string both = trusted_ + FileText(Directory("authority/ca.pem"));
  std::ofstream(Directory("authority/ca.pem")) << both;
  ExpectRefused(Join(former), grpc::StatusCode::INVALID_ARGUMENT, "another authority");
  v1::CreateJoinTokenResponse created;
  // The coordinator's own certificate is still one of the former authority, so that a worker could
  // not verify it with a token of the new one.
  const grpc::Status early = CreateToken({}, &created);
  EXPECT_EQ(early.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(early.error_message(), HasSubstr("has not signed"));
  Issue(Role::kCoordinator, "main");
  // The server may use either certificate for some seconds.
  trusted_ = both;
  std::ofstream(operator_.authority) << both;
  const grpc::Status made = CreateToken({}, &created);
  ASSERT_TRUE(made.ok()) << made.error_message();
  v1::JoinRequest request;
  request.set_token(created.token());
  request.set_worker("worker-0");
  request.set_certificate_request(MakeSigningRequest()->request);
  v1::JoinResponse joined;
  const grpc::Status join = Call(
      Anonymous(), [&](auto& stub, auto* context) { return stub.Join(context, request, &joined); });
  ASSERT_TRUE(join.ok()) << join.error_message();
  EXPECT_EQ(joined.authorities(), both);
}

TEST_F(EnrollmentServiceTest, AnAuthorityThatDoesNotFitIsRefusedAtTheStart) {
  const auto reason = [&](const std::string& directory) {
    const auto checked = CheckEnrollment(Directory(directory), coordinator_, Seconds());
    EXPECT_EQ(checked.status().code(), StatusCode::kInvalidArgument) << directory;
    return ToString(checked.status());
  };
  EXPECT_TRUE(CheckEnrollment(Directory("authority"), coordinator_, Seconds()).ok());
  EXPECT_THAT(reason("absent"), HasSubstr("authority.pem: cannot be read"));
  ASSERT_TRUE(WriteNewAuthority(Directory("other"), "other", Seconds()).ok());
  EXPECT_THAT(reason("other"),
              AllOf(HasSubstr("of the cluster other"), HasSubstr("spiffe://lab/coordinator/main")));
  ASSERT_TRUE(WriteNewAuthority(Directory("second"), "lab", Seconds()).ok());
  EXPECT_THAT(reason("second"), HasSubstr("has not signed"));
  std::filesystem::copy_file(Directory("second/authority.key"), Directory("other/authority.key"),
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(reason("other"), HasSubstr("does not belong to its certificate"));
  std::ofstream(Directory("other/authority.key")) << "";
  EXPECT_THAT(reason("other"), HasSubstr("authority.key: the file is empty"));
}

}  // namespace
}  // namespace troupe
