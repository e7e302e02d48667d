// Tokens and revocations on a coordinator with TLS: every line is a call that is made over the
// loopback.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/security/certificate.h"
#include "base/security/user_token.h"
#include "coordinator/access/access.h"
#include "coordinator/service/access_calls_test.h"
#include "coordinator/test_requests.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kListJobs[] = "/troupe.v1.JobService/ListJobs";
constexpr char kWatchJob[] = "/troupe.v1.JobService/WatchJob";
constexpr int64_t kTokenLifetime = 3600;

class TokenServiceTest : public AccessTest {
 protected:
  std::unique_ptr<v1::AccessService::Stub> Operator() {
    return v1::AccessService::NewStub(ChannelOf(Role::kOperator, "boss"));
  }

  static void SetDeadline(grpc::ClientContext* context) {
    context->set_deadline(std::chrono::system_clock::now() + kAccessCallLimit);
  }

  v1::CreateUserTokenResponse Create(Role role, const std::string& name = "ann") {
    v1::CreateUserTokenRequest request;
    request.set_name(name);
    request.set_role(std::string(RoleName(role)));
    request.set_lifetime_seconds(kTokenLifetime);
    v1::CreateUserTokenResponse response;
    grpc::ClientContext context;
    SetDeadline(&context);
    const grpc::Status status = Operator()->CreateUserToken(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  grpc::Status Revoke(const std::string& id) {
    v1::RevokeUserTokenRequest request;
    request.set_id(id);
    v1::RevokeUserTokenResponse response;
    grpc::ClientContext context;
    SetDeadline(&context);
    return Operator()->RevokeUserToken(&context, request, &response);
  }

  grpc::Status RevokeCertificate(const v1::RevokeCertificateRequest& request) {
    v1::RevokeCertificateResponse response;
    grpc::ClientContext context;
    SetDeadline(&context);
    return Operator()->RevokeCertificate(&context, request, &response);
  }

  // The channel of a client that sends this text as a token. It has a certificate only if
  // `certified` is given.
  std::shared_ptr<grpc::Channel> ChannelOfToken(
      const std::string& text, const std::optional<CertifiedKey>& certified = {}) const {
    return ChannelWith(certified, grpc::AccessTokenCredentials(text));
  }

  // Expects that a call with this token is refused and recorded with its id, if it has one, and
  // without its secret; returns the words.
  std::string Refusal(const std::string& text) {
    const Outcome outcome = CallAny(ChannelOfToken(text), kListJobs);
    EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_FALSE(outcome.answered);
    const auto parts = ParseUserToken(text);
    ExpectRefusalRecorded(parts.ok() ? "token:" + parts->id : "", kListJobs);
    if (parts.ok()) {
      EXPECT_THAT(Text("catalog/audit.log"), Not(HasSubstr(parts->secret)));
    }
    const std::string reason = Records().back().at("reason");
    EXPECT_EQ(reason, outcome.status.error_message());
    return reason;
  }

  // Submits a job, which has no worker to run on, so that watches of it stay open.
  void SubmitJob() {
    v1::CreateJobRequest create;
    *create.mutable_job() = PlannableJob("a");
    const Outcome created = CallAny(ChannelOf(Role::kSubmitter), "/troupe.v1.JobService/CreateJob",
                                    create.SerializeAsString());
    ASSERT_NE(created.response, "") << created.status.error_message();
  }
};

// A watch of the job "a" that has had its first update.
class OpenWatch {
 public:
  explicit OpenWatch(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::JobService::NewStub(channel)) {
    context_.set_deadline(std::chrono::system_clock::now() + kAccessCallLimit);
    v1::WatchJobRequest request;
    request.set_name("jobs/a");
    stream_ = stub_->WatchJob(&context_, request);
    v1::WatchJobResponse update;
    EXPECT_TRUE(stream_->Read(&update));
  }

  // Reads to the end, which the coordinator makes.
  grpc::Status End() {
    v1::WatchJobResponse update;
    while (stream_->Read(&update)) {
    }
    return stream_->Finish();
  }

 private:
  const std::unique_ptr<v1::JobService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::WatchJobResponse>> stream_;
};

// Each cell of the table is a call: the roles of tokens × all RPCs.
TEST_F(TokenServiceTest, ATokenOfEachRoleMayCallExactlyWhatTheTableStates) {
  Start();
  for (const Role role : {Role::kViewer, Role::kSubmitter, Role::kOperator}) {
    const auto created = Create(role);
    const std::string holder = fmt::format("token:{} ann", created.token().id());
    const auto channel = ChannelOfToken(created.text());
    ++clock_.shift_seconds;  // the log limits refusals per second
    for (const AccessRow& row : AccessTable()) {
      const std::string rpc(row.rpc);
      const Outcome outcome = CallAny(channel, rpc);
      const std::string cell =
          fmt::format("{} {}: {}", RoleName(role), rpc, outcome.status.error_message());
      if (row.Allows(role)) {
        EXPECT_TRUE(outcome.permitted()) << cell;
        if (row.effect != AccessEffect::kChanges) continue;
        EXPECT_EQ(Records().back().at("outcome"), "ALLOWED") << cell;
        EXPECT_EQ(Records().back().at("identity"), holder) << cell;
        EXPECT_EQ(Records().back().at("rpc"), rpc) << cell;
      } else {
        EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << cell;
        ExpectRefusalRecorded(holder, rpc);
      }
    }
  }
}

TEST_F(TokenServiceTest, ATokenIsRefusedForEachThingThatIsWrongWithIt) {
  Start();
  const auto created = Create(Role::kViewer);
  const std::string text = created.text();
  EXPECT_TRUE(CallAny(ChannelOfToken(text), kListJobs).answered);

  const std::string form = "the form troupe~CLUSTER~ID~SECRET of a whole token";
  EXPECT_THAT(Refusal("x"), HasSubstr(form));
  EXPECT_THAT(Refusal(text.substr(0, text.size() - 1)), HasSubstr(form));
  EXPECT_THAT(Refusal(text + "0"), HasSubstr(form));
  EXPECT_THAT(Refusal(UserTokenText(*MakeUserToken("field"))),
              HasSubstr("one of the cluster field, and this is the cluster lab"));
  // No caller learns which ids exist.
  auto wrong = *ParseUserToken(text);
  wrong.secret = MakeUserToken("lab")->secret;
  const std::string unknown = Refusal(UserTokenText(*MakeUserToken("lab")));
  EXPECT_EQ(Refusal(UserTokenText(wrong)), unknown);
  EXPECT_THAT(unknown, AllOf(HasSubstr("no such token"), Not(HasSubstr(wrong.id))));

  clock_.shift_seconds += kTokenLifetime;
  EXPECT_THAT(Refusal(text), HasSubstr("of ann expired at"));
  clock_.shift_seconds -= kTokenLifetime;
  EXPECT_TRUE(CallAny(ChannelOfToken(text), kListJobs).answered)
      << "the clock of the caller has no influence";
  ASSERT_TRUE(Revoke(created.token().id()).ok());
  EXPECT_THAT(Refusal(text), HasSubstr("of ann was revoked at"));
  EXPECT_EQ(Refusal(UserTokenText(wrong)), unknown);
}

TEST_F(TokenServiceTest, ACallWithACertificateAndATokenIsRefused) {
  Start();
  const std::string text = Create(Role::kOperator).text();
  const CertifiedKey certified = Certify({"spiffe://lab/viewer/ann"}, Now() - 60, Now() + 60);
  const Outcome outcome = CallAny(ChannelOfToken(text, certified), kListJobs);
  EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(outcome.status.error_message(), HasSubstr("a certificate and a token"));
  ExpectRefusalRecorded("spiffe://lab/viewer/ann", kListJobs);
}

TEST_F(TokenServiceTest, ItsSecretIsAnsweredOnceAndNowhereElse) {
  Start();
  const auto created = Create(Role::kSubmitter);
  const std::string secret = ParseUserToken(created.text())->secret;
  EXPECT_EQ(created.token().created_by(), "spiffe://lab/operator/boss");
  EXPECT_EQ(created.token().ShortDebugString().find(secret), std::string::npos);
  v1::CancelJobRequest cancel;
  cancel.set_name("a");
  CallAny(ChannelOfToken(created.text()), "/troupe.v1.JobService/CancelJob",
          cancel.SerializeAsString());
  v1::ListUserTokensResponse listed;
  grpc::ClientContext context;
  SetDeadline(&context);
  ASSERT_TRUE(Operator()->ListUserTokens(&context, {}, &listed).ok());
  ASSERT_EQ(listed.tokens_size(), 1);
  EXPECT_EQ(listed.tokens(0).id(), created.token().id());
  EXPECT_EQ(listed.ShortDebugString().find(secret), std::string::npos);
  const std::string log = Text("catalog/audit.log");
  EXPECT_THAT(log, AllOf(HasSubstr("token:" + created.token().id() + " ann"),
                         HasSubstr("tokens/" + created.token().id() + " submitter ann"),
                         Not(HasSubstr(secret))));
}

TEST_F(TokenServiceTest, TokensAndRevocationsSurviveARestart) {
  Start();
  const auto kept = Create(Role::kViewer), revoked = Create(Role::kViewer);
  ASSERT_TRUE(Revoke(revoked.token().id()).ok());
  const CertifiedKey certified = Certify({"spiffe://lab/viewer/vera"}, Now() - 60, Now() + 600);
  v1::RevokeCertificateRequest request;
  request.set_serial(ReadCertificate(certified.certificate)->serial);
  ASSERT_TRUE(RevokeCertificate(request).ok());
  server_.reset();
  Start();
  EXPECT_TRUE(CallAny(ChannelOfToken(kept.text()), kListJobs).answered);
  EXPECT_THAT(Refusal(revoked.text()), HasSubstr("was revoked"));
  EXPECT_EQ(CallAny(ChannelWith(certified), kListJobs).status.error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(TokenServiceTest, TheCoordinatorsOwnCertificateIsNotRevoked) {
  Start();
  const auto files = CheckTlsDirectory(Directory("coordinator-ann"), Now());
  ASSERT_TRUE(files.ok()) << files.status();
  v1::RevokeCertificateRequest request;
  request.set_serial(ReadCertificate(ReadTlsContents(*files)->certificate)->serial);
  const grpc::Status refused = RevokeCertificate(request);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr("the certificate of this coordinator"));
}

TEST_F(TokenServiceTest, ARevokedCertificateIsRefusedAtTheNextCallAndANewOneIsNot) {
  Start();
  const std::string uri = "spiffe://lab/viewer/vera";
  const auto former = ChannelWith(Certify({uri}, Now() - 60, Now() + 600));
  ASSERT_TRUE(CallAny(former, kListJobs).answered);
  v1::RevokeCertificateRequest request;
  request.set_identity(uri);
  ASSERT_TRUE(RevokeCertificate(request).ok());
  const Outcome refused = CallAny(former, kListJobs);
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(refused.status.error_message(), HasSubstr("was revoked at"));
  ExpectRefusalRecorded(uri, kListJobs);
  // One that is issued in the next second. The TLS library compares it with the system's clock.
  const int64_t revoked = Now();
  // std::time may lag behind the clock by a tick.
  while (std::time(nullptr) <= revoked) CallAny(former, kListJobs);
  const auto renewed = ChannelWith(Certify({uri}, Now(), Now() + 600));
  EXPECT_TRUE(CallAny(renewed, kListJobs).answered);
  EXPECT_TRUE(
      CallAny(ChannelWith(Certify({"spiffe://lab/viewer/bob"}, Now() - 60, Now() + 600)), kListJobs)
          .answered);
}

TEST_F(TokenServiceTest, TheSessionOfARevokedWorkerEnds) {
  Start();
  const CertifiedKey certified = Certify({"spiffe://lab/worker/worker-0"}, Now() - 60, Now() + 600);
  const auto stub = v1::WorkerService::NewStub(ChannelWith(certified));
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto stream = stub->Session(&context);
  ASSERT_TRUE(stream->Write(HelloOf("worker-0")));
  v1::CoordinatorMessage message;
  ASSERT_TRUE(stream->Read(&message));
  v1::RevokeCertificateRequest request;
  request.set_serial(ReadCertificate(certified.certificate)->serial);
  ASSERT_TRUE(RevokeCertificate(request).ok());
  while (stream->Read(&message)) {
  }
  const grpc::Status ended = stream->Finish();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::UNAUTHENTICATED) << ended.error_message();
  ExpectRefusalRecorded("spiffe://lab/worker/worker-0", "/troupe.v1.WorkerService/Session");
}

TEST_F(TokenServiceTest, AnOpenWatchEndsWhenItsTokenIsRevokedOrExpires) {
  Start();
  SubmitJob();
  const auto revoked = Create(Role::kViewer), expired = Create(Role::kViewer);
  OpenWatch first(ChannelOfToken(revoked.text())), second(ChannelOfToken(expired.text()));
  ASSERT_TRUE(Revoke(revoked.token().id()).ok());
  grpc::Status ended = first.End();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::UNAUTHENTICATED) << ended.error_message();
  EXPECT_THAT(ended.error_message(), HasSubstr("was revoked"));
  ExpectRefusalRecorded("token:" + revoked.token().id() + " ann", kWatchJob);
  clock_.shift_seconds += kTokenLifetime;
  ended = second.End();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::UNAUTHENTICATED) << ended.error_message();
  EXPECT_THAT(ended.error_message(), HasSubstr("expired"));
  ExpectRefusalRecorded("token:" + expired.token().id() + " ann", kWatchJob);
}

TEST_F(TokenServiceTest, AnOpenWatchEndsWhenItsCertificateExpires) {
  Start();
  SubmitJob();
  const std::string uri = "spiffe://lab/viewer/vera";
  OpenWatch watch(ChannelWith(Certify({uri}, Now() - 60, Now() + 600)));
  clock_.shift_seconds += 700;
  const grpc::Status ended = watch.End();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::UNAUTHENTICATED) << ended.error_message();
  EXPECT_THAT(ended.error_message(), HasSubstr("expired"));
  ExpectRefusalRecorded(uri, kWatchJob);
}

TEST_F(TokenServiceTest, ACoordinatorWithoutTlsCreatesNone) {
  ServerOptions options;
  options.data_directory = Directory("catalog");
  auto server = Server::Start(options);
  ASSERT_TRUE(server.ok()) << ToString(server.status());
  server_ = *std::move(server);
  const auto stub = v1::AccessService::NewStub(
      grpc::CreateChannel(Address(), grpc::InsecureChannelCredentials()));
  v1::CreateUserTokenResponse response;
  grpc::ClientContext context;
  SetDeadline(&context);
  const grpc::Status status = stub->CreateUserToken(&context, {}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("--tls-dir"));
  EXPECT_EQ(response.text(), "");
}

}  // namespace
}  // namespace troupe
