// Tests renewals against a server in this process, which signs certificates.
#include "worker/daemon/certificate_renewal.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/security/authority.h"
#include "base/security/authority_files.h"
#include "base/security/credentials.h"
#include "base/temporary_directory.h"
#include "base/text_file.h"
#include "troupe/v1/service.grpc.pb.h"
#include "worker/daemon/coordinator_stream.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

constexpr auto kRenewedLimit = std::chrono::seconds(60);
constexpr int64_t kLife = 3600;  // that of the certificates which the server signs

// Signs certificates of worker-0, unless it has an error to answer.
class Signer final : public v1::EnrollmentService::Service {
 public:
  explicit Signer(CertifiedKey authority) : authority_(std::move(authority)) {}

  void Answer(grpc::Status error) {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
  }
  // Waits until `calls` calls were made.
  bool AwaitCalls(int calls) {
    std::unique_lock lock(mutex_);
    return called_.wait_for(lock, kRenewedLimit, [&] { return calls_ >= calls; });
  }

 private:
  grpc::Status Renew(grpc::ServerContext*, const v1::RenewRequest* request,
                     v1::RenewResponse* response) override {
    const std::lock_guard lock(mutex_);
    ++calls_;
    called_.notify_all();
    if (!error_.ok()) return error_;
    const int64_t now = std::time(nullptr);
    const auto made = SignRequestedKey(authority_, request->certificate_request(),
                                       {.common_name = "worker-0",
                                        .uris = {"spiffe://lab/worker/worker-0"},
                                        .not_before = now - kMostClockSkew,
                                        .not_after = now + kLife});
    EXPECT_TRUE(made.ok()) << ToString(made.status());
    response->set_certificate(*made);
    return grpc::Status::OK;
  }

  const CertifiedKey authority_;
  std::mutex mutex_;
  std::condition_variable called_;
  grpc::Status error_;
  int calls_ = 0;
};

// Notes the certificates with which sessions are opened, and keeps these open, but for those of a
// certificate that is refused.
class Sessions final : public v1::WorkerService::Service {
 public:
  void Refuse(const std::string& serial) {
    const std::lock_guard lock(mutex_);
    refused_ = serial;
  }
  bool AwaitSerial(const std::string& serial) {
    std::unique_lock lock(mutex_);
    return opened_.wait_for(lock, kRenewedLimit,
                            [&] { return !serials_.empty() && serials_.back() == serial; });
  }

 private:
  grpc::Status Session(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>* stream) override {
    const auto pem = context->auth_context()->FindPropertyValues("x509_pem_cert");
    {
      const std::lock_guard lock(mutex_);
      for (const auto& one : pem)
        serials_.push_back(ReadCertificate({one.data(), one.size()})->serial);
      opened_.notify_all();
      if (!serials_.empty() && serials_.back() == refused_)
        return {grpc::StatusCode::UNAUTHENTICATED, "revoked"};
    }
    v1::WorkerMessage ignored;
    while (stream->Read(&ignored)) {
    }
    return grpc::Status::OK;
  }

  std::mutex mutex_;
  std::condition_variable opened_;
  std::vector<std::string> serials_;
  std::string refused_;
};

class CertificateRenewalTest : public ::testing::Test {
 protected:
  CertificateRenewalTest() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(
        "127.0.0.1:0", TlsServerCredentialsOf(Issue(Role::kCoordinator, "main", kLife)), &port_);
    builder.RegisterService(&signer_);
    builder.RegisterService(&sessions_);
    server_ = builder.BuildAndStart();
  }
  ~CertificateRenewalTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  // The TLS directory of a certificate that was signed now, or `age` seconds ago; if that is
  // negative, while the clock was ahead.
  TlsFiles Issue(Role role, const std::string& name, int64_t life, int64_t age = 0) const {
    const int64_t signed_at = std::time(nullptr) - age;
    const Identity identity{"lab", role, name};
    const auto made = SignCertificate(authority_, {.common_name = name,
                                                   .uris = {ToUri(identity)},
                                                   .not_before = signed_at - kMostClockSkew,
                                                   .not_after = signed_at + life});
    const auto stored = StoreTlsDirectory(directory_.Child(name), identity,
                                          {authority_.certificate, made->certificate, made->key},
                                          std::max<int64_t>(std::time(nullptr), signed_at));
    EXPECT_TRUE(stored.ok()) << ToString(stored.status());
    return *CheckTlsDirectory(directory_.Child(name), std::time(nullptr));
  }

  std::string address() const { return fmt::format("127.0.0.1:{}", port_); }
  static std::string SerialIn(const TlsFiles& files) {
    return ReadCertificate(*ReadTextFile(files.certificate))->serial;
  }

  std::unique_ptr<CertificateRenewal> Start(const TlsFiles& worker) {
    return std::make_unique<CertificateRenewal>(
        CertificateRenewal::Options{.coordinator = address(),
                                    .tls = worker,
                                    .uniform = [] { return 0.0; },
                                    .on_renewed = [this] { renewed_.set_value(); }});
  }

  const TemporaryDirectory directory_;
  const CertifiedKey authority_ = *MakeAuthority("lab", std::time(nullptr));
  Signer signer_{authority_};
  Sessions sessions_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  std::promise<void> renewed_;
};

TEST_F(CertificateRenewalTest, ACertificateThatIsDueIsReplaced) {
  const TlsFiles worker = Issue(Role::kWorker, "worker-0", kLife, kLife * 3 / 4);
  const std::string serial = SerialIn(worker);
  const std::string key = *ReadTextFile(worker.key);
  const auto renewal = Start(worker);
  ASSERT_EQ(renewed_.get_future().wait_for(kRenewedLimit), std::future_status::ready);
  EXPECT_NE(SerialIn(worker), serial);
  EXPECT_NE(*ReadTextFile(worker.key), key);
  const auto files = CheckTlsDirectory(directory_.Child("worker-0"), std::time(nullptr));
  ASSERT_TRUE(files.ok()) << ToString(files.status());
  EXPECT_EQ(files->identity, worker.identity);
}

// It replaced the former pair while the clock was ahead, and locks the worker out by itself.
TEST_F(CertificateRenewalTest, ACertificateOfTheFutureIsRenewedAnewWithTheFormerPair) {
  Issue(Role::kWorker, "worker-0", kLife);
  const TlsFiles worker = Issue(Role::kWorker, "worker-0", kLife, -kLife * 3 / 4);
  const std::string serial = SerialIn(worker);
  const auto renewal = Start(worker);
  ASSERT_EQ(renewed_.get_future().wait_for(kRenewedLimit), std::future_status::ready);
  EXPECT_NE(SerialIn(worker), serial);
  const auto facts = ReadCertificate(*ReadTextFile(worker.certificate));
  EXPECT_TRUE(CheckValidAt(*facts, std::time(nullptr)).ok());
}

TEST_F(CertificateRenewalTest, AFailureIsRepeatedAndLeavesTheFiles) {
  signer_.Answer(grpc::Status(grpc::StatusCode::UNAVAILABLE, "not now"));
  const TlsFiles worker = Issue(Role::kWorker, "worker-0", kLife, kLife * 3 / 4);
  const std::string serial = SerialIn(worker);
  const auto renewal = Start(worker);
  ASSERT_TRUE(signer_.AwaitCalls(2));
  EXPECT_EQ(SerialIn(worker), serial);
  signer_.Answer(grpc::Status::OK);
  ASSERT_EQ(renewed_.get_future().wait_for(kRenewedLimit), std::future_status::ready);
  EXPECT_NE(SerialIn(worker), serial);
}

TEST_F(CertificateRenewalTest, ACoordinatorThatSignsNothingLeavesTheFiles) {
  signer_.Answer(grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "without --authority"));
  const TlsFiles worker = Issue(Role::kWorker, "worker-0", kLife);
  const std::string serial = SerialIn(worker);
  grpc::ClientContext context;
  const auto refused = RenewCertificate(address(), worker, &context);
  EXPECT_EQ(refused.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(ToString(refused.status()), HasSubstr("--authority"));
  EXPECT_EQ(SerialIn(worker), serial);
}

TEST_F(CertificateRenewalTest, ACertificateOfAnotherHolderIsNotStored) {
  const TlsFiles worker = Issue(Role::kWorker, "worker-1", kLife);
  const std::string serial = SerialIn(worker);
  grpc::ClientContext context;
  const auto refused = RenewCertificate(address(), worker, &context);
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(ToString(refused.status()), HasSubstr("spiffe://lab/worker/worker-0"));
  EXPECT_EQ(SerialIn(worker), serial);
}

size_t ThreadsOfThisProcess() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                                           std::filesystem::directory_iterator()));
}

// Each dial and each try to renew once made two threads that stayed.
TEST_F(CertificateRenewalTest, FilesThatAreNotUsableMakeNoConnectionsAndNoThreads) {
  const TlsFiles worker = Issue(Role::kWorker, "worker-0", kLife);
  CoordinatorDialer dialer(address(), worker);
  std::ofstream(worker.certificate, std::ios::trunc) << "";
  const auto dial = [&] {
    dialer
        .Dial({.on_message = [](v1::CoordinatorMessage,
                                const std::shared_ptr<void>&) { return OkStatus(); },
               .on_closed = [](const StreamEnd&) {}})
        .reset();
  };
  dial();
  const size_t before = ThreadsOfThisProcess();
  for (int i = 0; i < 20; ++i) {
    dial();
    grpc::ClientContext context;
    const auto refused = RenewCertificate(address(), worker, &context);
    EXPECT_THAT(ToString(refused.status()), HasSubstr("cert.pem: the file is empty"));
  }
  EXPECT_LE(ThreadsOfThisProcess(), before + 10);
}

TEST_F(CertificateRenewalTest, AStreamThatIsDialledAfterARefusalHasTheCertificateOfTheFiles) {
  const TlsFiles worker = Issue(Role::kWorker, "worker-0", kLife);
  CoordinatorDialer dialer(address(), worker);
  const auto dial = [&](std::promise<bool>* refused) {
    return dialer.Dial(
        {.on_message = [](v1::CoordinatorMessage,
                          const std::shared_ptr<void>&) { return OkStatus(); },
         .on_closed = [refused](const StreamEnd& end) { refused->set_value(end.access_refused); }});
  };
  std::promise<bool> first_closed, second_closed;
  const std::string revoked = SerialIn(worker);
  sessions_.Refuse(revoked);
  auto first = dial(&first_closed);
  auto refused = first_closed.get_future();
  ASSERT_EQ(refused.wait_for(kRenewedLimit), std::future_status::ready);
  EXPECT_TRUE(refused.get());
  Issue(Role::kWorker, "worker-0", kLife);
  ASSERT_NE(SerialIn(worker), revoked);
  auto second = dial(&second_closed);
  EXPECT_TRUE(sessions_.AwaitSerial(SerialIn(worker)));
  second.reset();
  EXPECT_EQ(second_closed.get_future().wait_for(kRenewedLimit), std::future_status::ready);
}

TEST_F(CertificateRenewalTest, AStreamThatIsDialledAfterARenewalHasTheNewCertificate) {
  const TlsFiles worker = Issue(Role::kWorker, "worker-0", kLife);
  CoordinatorDialer dialer(address(), worker);
  const auto dial = [&](std::promise<std::string>* closed) {
    return dialer.Dial(
        {.on_message = [](v1::CoordinatorMessage,
                          const std::shared_ptr<void>&) { return OkStatus(); },
         .on_closed = [closed](const StreamEnd& end) { closed->set_value(end.reason); }});
  };
  std::promise<std::string> first_closed, second_closed;
  auto first = dial(&first_closed);
  ASSERT_TRUE(sessions_.AwaitSerial(SerialIn(worker)));
  grpc::ClientContext context;
  const auto renewed = RenewCertificate(address(), worker, &context);
  ASSERT_TRUE(renewed.ok()) << ToString(renewed.status());
  dialer.Reconnect("renewed");
  auto closed = first_closed.get_future();
  ASSERT_EQ(closed.wait_for(kRenewedLimit), std::future_status::ready);
  EXPECT_EQ(closed.get(), "renewed");
  auto second = dial(&second_closed);
  EXPECT_TRUE(sessions_.AwaitSerial(renewed->serial));
  first.reset();
  second.reset();
  EXPECT_EQ(second_closed.get_future().wait_for(kRenewedLimit), std::future_status::ready);
}

}  // namespace
}  // namespace troupe
