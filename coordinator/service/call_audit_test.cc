// Who the caller of a call is, with the true secret of the process.
#include "coordinator/service/call_audit.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "base/security/credentials.h"
#include "base/store/memory_store.h"
#include "coordinator/access/audit_log.h"
#include "coordinator/service/access_calls_test.h"
#include "troupe/v1/service.grpc.pb.h"

namespace troupe {
namespace {

constexpr char kTrueSecret[] = "0123456789abcdef";

// Answers each GetJob with an error that names its caller.
class NamingService final : public v1::JobService::CallbackService {
 public:
  explicit NamingService(const CallAudit& audit) : audit_(audit) {}

  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* /*request*/,
                                   v1::GetJobResponse* /*response*/) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish({grpc::StatusCode::ABORTED, CallerName(audit_, *context)});
    return reactor;
  }

 private:
  const CallAudit& audit_;
};

class CallAuditTest : public AccessTest {
 protected:
  void SetUp() override {
    auto log = AuditLog::Open(Directory("audit.log"), clock_);
    ASSERT_TRUE(log.ok()) << ToString(log.status());
    log_ = *std::move(log);
    auto access = AccessControl::Open("lab", store_, clock_, *log_);
    ASSERT_TRUE(access.ok()) << ToString(access.status());
    access_ = *std::move(access);
    audit_.emplace(CallAudit{*log_, *access_, &internal_});
    service_ = std::make_unique<NamingService>(*audit_);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", TlsServerCredentialsOf(Issue(Role::kCoordinator, "a")),
                             &port_);
    builder.RegisterService(service_.get());
    naming_server_ = builder.BuildAndStart();
    ASSERT_NE(naming_server_, nullptr);
  }
  ~CallAuditTest() override {
    if (naming_server_ != nullptr) naming_server_->Shutdown();
  }

  std::shared_ptr<grpc::Channel> ChannelWithCertificate(const std::string& name) {
    return grpc::CreateChannel(fmt::format("127.0.0.1:{}", port_),
                               TlsChannelCredentialsOf(Issue(Role::kViewer, name)));
  }

  // Returns the name of the caller of a call with this secret, made for the operator eve.
  std::string CallerSeen(const std::shared_ptr<grpc::Channel>& channel,
                         const std::string& secret) const {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kAccessCallLimit);
    context.AddMetadata(kInternalCallerKey, secret);
    context.AddMetadata(kViewerKey, "1");
    context.AddMetadata(
        kViewerCertificateKey,
        Certify({"spiffe://lab/operator/eve"}, Now() - 60, Now() + 600).certificate);
    v1::GetJobResponse response;
    const grpc::Status status =
        v1::JobService::NewStub(channel)->GetJob(&context, v1::GetJobRequest(), &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED) << status.error_message();
    return status.error_message();
  }

  MemoryStore store_;
  const InternalCaller internal_{.secret = kTrueSecret, .identity = {}};
  std::unique_ptr<AuditLog> log_;
  std::unique_ptr<AccessControl> access_;
  std::optional<CallAudit> audit_;
  std::unique_ptr<NamingService> service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> naming_server_;
};

TEST_F(CallAuditTest, OverTlsTheCertificateNamesTheCallerEvenWithTheTrueSecret) {
  EXPECT_EQ(CallerSeen(ChannelWithCertificate("bob"), kTrueSecret), "spiffe://lab/viewer/bob");
}

TEST_F(CallAuditTest, WithinTheProcessTheTrueSecretMakesACallThatOfItsViewer) {
  const auto channel = naming_server_->InProcessChannel(grpc::ChannelArguments());
  EXPECT_EQ(CallerSeen(channel, kTrueSecret), "spiffe://lab/operator/eve");
  EXPECT_THAT(CallerSeen(channel, "guess"), ::testing::Not(::testing::HasSubstr("eve")));
}

}  // namespace
}  // namespace troupe
