// A gRPC server and its clients over the loopback, with certificates of several authorities.
#include "base/security/credentials.h"

#include <gmock/gmock.h>
#include <google/protobuf/wrappers.pb.h>
#include <grpc/support/log.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/security/certificate.h"
#include "base/security/grpc_log.h"
#include "base/security/test_certificates.h"
#include "base/temporary_directory.h"

namespace troupe {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using testing::HasSubstr;
using testing::Not;

constexpr seconds kLimit{30};

// Ends every call with ABORTED and the identities of the caller, or "token " and its token, as the
// message, which proves that the call has reached the server.
class CallerService final : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    class Reactor final : public grpc::ServerGenericBidiReactor {
     public:
      explicit Reactor(const std::string& caller) {
        Finish(grpc::Status(grpc::StatusCode::ABORTED, caller));
      }
      void OnDone() override { delete this; }
    };
    std::string caller;
    for (const auto& uri : context->auth_context()->FindPropertyValues("peer_uri")) {
      caller += std::string(uri.data(), uri.size());
    }
    constexpr size_t kBearerBytes = 7;  // "Bearer "
    for (const auto& [key, value] : context->client_metadata()) {
      if (key == "authorization")
        caller += "token " + std::string(value.data(), value.size()).substr(kBearerBytes);
    }
    return new Reactor(caller);
  }
};

class Server {
 public:
  explicit Server(const std::shared_ptr<grpc::ServerCredentials>& credentials) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port_);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    EXPECT_NE(server_, nullptr);
  }
  ~Server() { server_->Shutdown(std::chrono::system_clock::now()); }
  std::string address(const std::string& host = "127.0.0.1") const {
    return fmt::format("{}:{}", host, port_);
  }

 private:
  CallerService service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

struct Answer {
  std::string caller;         // empty if the call did not reach the server
  std::string error;          // if it did not
  std::string server_serial;  // serial number of its certificate
};

class Client {
 public:
  Client(const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    channel_ = grpc::CreateCustomChannel(address, credentials, arguments);
  }
  Client(const Server& server, const std::shared_ptr<grpc::ChannelCredentials>& credentials)
      : Client(server.address(), credentials) {}

  Answer Call() const {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLimit);
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareUnaryCall(&context, "/test/Call", grpc::ByteBuffer(), &queue);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    if (status.error_code() != grpc::StatusCode::ABORTED) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
      return {.error = status.error_message()};
    }
    const auto pem = context.auth_context()->FindPropertyValues("x509_pem_cert");
    EXPECT_EQ(pem.size(), 1u);
    return {.caller = status.error_message(),
            .server_serial = ReadCertificate({pem[0].data(), pem[0].size()})->serial};
  }

 private:
  std::shared_ptr<grpc::Channel> channel_;
};

// Credentials that gRPC makes from these texts, without our checks.
struct Unchecked {
  std::string authorities;
  std::vector<CertifiedKey> holders;

  std::shared_ptr<grpc::experimental::CertificateProviderInterface> Provider() const {
    std::vector<grpc::experimental::IdentityKeyCertPair> pairs;
    for (const CertifiedKey& holder : holders) pairs.push_back({holder.key, holder.certificate});
    return std::make_shared<grpc::experimental::StaticDataCertificateProvider>(authorities, pairs);
  }

  std::shared_ptr<grpc::ServerCredentials> OfServer() const {
    grpc::experimental::TlsServerCredentialsOptions options(Provider());
    options.watch_root_certs();
    options.watch_identity_key_cert_pairs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    return grpc::experimental::TlsServerCredentials(options);
  }

  std::shared_ptr<grpc::ChannelCredentials> OfChannel() const {
    grpc::experimental::TlsChannelCredentialsOptions options;
    options.set_certificate_provider(Provider());
    options.watch_root_certs();
    if (!holders.empty()) options.watch_identity_key_cert_pairs();
    options.set_check_call_host(false);
    options.set_certificate_verifier(
        std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
    return grpc::experimental::TlsCredentials(options);
  }
};

// Returns the number of this process's descriptors.
size_t CountDescriptors() {
  const std::filesystem::directory_iterator descriptors("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(descriptors), end(descriptors)));
}

class CredentialsTest : public testing::Test {
 protected:
  // gRPC writes a line for every refused connection.
  static void SetUpTestSuite() { DropGrpcRecords(); }
  static void DropGrpcRecords() {
    gpr_set_log_function([](gpr_log_func_args*) {});
  }

  // Returns checked files in a directory of its own that hold this certificate.
  TlsFiles Write(const std::string& name, const std::string& authorities,
                 const CertifiedKey& holder) const {
    const std::string directory = directory_.Child(name);
    WriteTlsDirectory(directory, authorities, holder);
    const auto files = CheckTlsDirectory(directory, std::time(nullptr));
    EXPECT_TRUE(files.ok()) << files.status();
    return *files;
  }
  TlsFiles Issue(const TestAuthority& authority, Role role, const std::string& name) const {
    return Write(name, authority.pem(), authority.Issue(role, name));
  }
  Answer Call(const Server& server, const TlsFiles& files) const {
    return Client(server, TlsChannelCredentialsOf(files)).Call();
  }
  // Calls on new connections until `done` accepts the answer.
  void CallUntil(const Server& server, const TlsFiles& files,
                 const std::function<bool(const Answer&)>& done) const {
    const auto end = steady_clock::now() + kLimit;
    Answer answer;
    while (steady_clock::now() < end) {
      answer = Call(server, files);
      if (done(answer)) return;
    }
    ADD_FAILURE() << "last answer: caller " << answer.caller << ", error " << answer.error;
  }

  const int64_t now_ = std::time(nullptr);
  const TestAuthority authority_{"lab"};
  const TestAuthority foreign_{"lab"};
  const TemporaryDirectory directory_;
  const TlsFiles coordinator_ = Issue(authority_, Role::kCoordinator, "c");
  const TlsFiles worker_ = Issue(authority_, Role::kWorker, "w");
};

TEST_F(CredentialsTest, ACallHasTheIdentityOfItsCaller) {
  const Server server(TlsServerCredentialsOf(coordinator_));
  const Answer answer = Call(server, worker_);
  EXPECT_EQ(answer.caller, "spiffe://lab/worker/w") << answer.error;
  EXPECT_EQ(Call(server, Issue(authority_, Role::kViewer, "ann")).caller,
            "spiffe://lab/viewer/ann");
}

TEST_F(CredentialsTest, AConnectionByAnyHostLeavesNoRecordOfAServerName) {
  const Server server(TlsServerCredentialsOf(coordinator_));
  LogGrpcRecords();
  testing::internal::CaptureStderr();
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const Answer answer = Client(server.address(host), TlsChannelCredentialsOf(worker_)).Call();
    EXPECT_EQ(answer.caller, "spiffe://lab/worker/w") << answer.error;
  }
  gpr_log(GPR_ERROR, "another record");
  DropGrpcRecords();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, Not(HasSubstr("No match found")));
  EXPECT_THAT(log, HasSubstr("grpc another record"));
}

TEST(GrpcLogTest, HasWhatProtocolBuffersReportsUpToALimit) {
  LogGrpcRecords();
  testing::internal::CaptureStderr();
  google::protobuf::StringValue parsed;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(parsed.ParseFromString("\x0a\x01\xe9"));
  DropGrpcRecords();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("protobuf String field 'google.protobuf.StringValue.value'"));
  EXPECT_EQ(std::ranges::count(log, '\n'), 3) << log;
}

TEST_F(CredentialsTest, AClientWithoutACertificateIsConnectedWithoutAnIdentity) {
  const Server server(TlsServerCredentialsOf(coordinator_));
  const Answer answer = Client(server, AnonymousChannelCredentials(authority_.pem(), "lab")).Call();
  EXPECT_EQ(answer.caller, "");
  EXPECT_NE(answer.server_serial, "") << answer.error;
  // The same with a certificate, to show that only it was missing.
  const Unchecked with{authority_.pem(), {authority_.Issue(Role::kViewer, "v")}};
  EXPECT_EQ(Client(server, with.OfChannel()).Call().caller, "spiffe://lab/viewer/v");
}

TEST_F(CredentialsTest, AClientWithoutACertificateVerifiesTheServer) {
  const Server server(TlsServerCredentialsOf(coordinator_));
  for (const auto& credentials : {AnonymousChannelCredentials(foreign_.pem(), "lab"),
                                  AnonymousChannelCredentials(authority_.pem(), "other")}) {
    EXPECT_EQ(Client(server, credentials).Call().server_serial, "");
  }
  const Server impostor(TlsServerCredentialsOf(worker_));
  const auto credentials = AnonymousChannelCredentials(authority_.pem(), "lab");
  EXPECT_EQ(Client(impostor, credentials).Call().server_serial, "");
  EXPECT_NE(Client(impostor, UnverifiedChannelCredentials()).Call().server_serial, "");
}

TEST_F(CredentialsTest, AClientWithATokenChecksTheServerAndHasNoCertificate) {
  const Server server(TlsServerCredentialsOf(coordinator_));
  // The directory of a worker, whose certificate is not used.
  const auto files = CheckAuthorityIn(directory_.Child("w"), "lab");
  ASSERT_TRUE(files.ok()) << files.status();
  const Answer answer = Client(server, TokenChannelCredentialsOf(*files, "secret")).Call();
  EXPECT_EQ(answer.caller, "token secret") << answer.error;
  // A server of another cluster does not get the token.
  const auto other = CheckAuthorityIn(directory_.Child("w"), "other");
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE(Client(server, TokenChannelCredentialsOf(*other, "secret")).Call().error, "");
  const Server impostor(TlsServerCredentialsOf(worker_));
  EXPECT_NE(Client(impostor, TokenChannelCredentialsOf(*files, "secret")).Call().error, "");
}

TEST_F(CredentialsTest, TheAuthorityOfAClientWithATokenIsReplacedWithoutNewCredentials) {
  const Server server(TlsServerCredentialsOf(coordinator_));
  WriteTlsDirectory(directory_.Child("t"), foreign_.pem(), foreign_.Issue(Role::kViewer, "v"));
  const auto files = CheckAuthorityIn(directory_.Child("t"), "lab");
  ASSERT_TRUE(files.ok()) << files.status();
  const auto credentials = TokenChannelCredentialsOf(*files, "secret");
  EXPECT_NE(Client(server, credentials).Call().error, "");
  WriteTextFile(files->authority, authority_.pem());
  const auto end = steady_clock::now() + kLimit;
  Answer answer;
  while (answer.caller.empty() && steady_clock::now() < end) {
    answer = Client(server, credentials).Call();
  }
  EXPECT_EQ(answer.caller, "token secret") << answer.error;
}

TEST_F(CredentialsTest, ATokenNeedsAnAuthorityThatCanBeRead) {
  EXPECT_EQ(CheckAuthorityIn(directory_.Child("absent"), "lab").status().code(),
            StatusCode::kInvalidArgument);
  WriteTlsDirectory(directory_.Child("t"), "no certificate", authority_.Issue(Role::kViewer, "v"));
  const Status refused = CheckAuthorityIn(directory_.Child("t"), "lab").status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(ToString(refused).find("ca.pem"), std::string::npos) << refused;
}

TEST_F(CredentialsTest, AClientWithoutTlsIsRefused) {
  const Server server(TlsServerCredentialsOf(coordinator_));
  EXPECT_EQ(Client(server, grpc::InsecureChannelCredentials()).Call().caller, "");
}

TEST_F(CredentialsTest, AServerWithoutTlsIsRefused) {
  const Server server(grpc::InsecureServerCredentials());
  EXPECT_EQ(Call(server, worker_).caller, "");
}

TEST_F(CredentialsTest, AClientOfAForeignAuthorityIsRefused) {
  const Server server(TlsServerCredentialsOf(coordinator_));
  const Unchecked client{authority_.pem(), {foreign_.Issue(Role::kOperator, "o")}};
  EXPECT_EQ(Client(server, client.OfChannel()).Call().caller, "");
}

TEST_F(CredentialsTest, AServerOfAForeignAuthorityIsRefused) {
  const CertifiedKey holder = foreign_.Issue(Role::kCoordinator, "c");
  const Server server(
      TlsServerCredentialsOf(Write("foreign", foreign_.pem() + authority_.pem(), holder)));
  EXPECT_EQ(Call(server, worker_).caller, "");
}

TEST_F(CredentialsTest, ACertificateThatVouchesForItselfIsRefused) {
  const Server server(TlsServerCredentialsOf(coordinator_));
  const auto self = MakeAuthority("lab", now_);
  EXPECT_EQ(Client(server, Unchecked{authority_.pem(), {*self}}.OfChannel()).Call().caller, "");
}

TEST_F(CredentialsTest, AnExpiredOrEarlyClientIsRefused) {
  const Server server(TlsServerCredentialsOf(coordinator_));
  const std::vector<std::string> uris = {"spiffe://lab/operator/o"};
  const CertifiedKey expired = authority_.IssueWith(uris, now_ - kTestDay, now_ - 60);
  const CertifiedKey early = authority_.IssueWith(uris, now_ + 3600, now_ + kTestDay);
  // Made by a host whose clock is minutes ahead, without the allowance of IssueTlsDirectory.
  const CertifiedKey minutes_early = authority_.IssueWith(uris, now_ + 180, now_ + kTestDay);
  for (const CertifiedKey& holder : {expired, early, minutes_early}) {
    const Unchecked client{authority_.pem(), {holder}};
    EXPECT_EQ(Client(server, client.OfChannel()).Call().caller, "");
  }
}

TEST_F(CredentialsTest, AnExpiredServerIsRefused) {
  const Unchecked expired{
      authority_.pem(),
      {authority_.IssueWith({"spiffe://lab/coordinator/c"}, now_ - kTestDay, now_ - 60)}};
  const Server server(expired.OfServer());
  EXPECT_EQ(Call(server, worker_).caller, "");
}

TEST_F(CredentialsTest, AServerThatIsNoCoordinatorOfTheClusterIsRefused) {
  const std::vector<std::string> two = {"spiffe://lab/coordinator/c", "spiffe://lab/worker/w"};
  for (const std::vector<std::string>& uris : {std::vector<std::string>{"spiffe://lab/worker/w"},
                                               {"spiffe://lab/operator/o"},
                                               {"spiffe://other/coordinator/c"},
                                               {"spiffe://lab.org/coordinator/c"},
                                               {},
                                               two}) {
    const Unchecked holder{authority_.pem(),
                           {authority_.IssueWith(uris, now_ - 60, now_ + kTestDay)}};
    const Server server(holder.OfServer());
    EXPECT_EQ(Call(server, worker_).caller, "") << fmt::format("{}", fmt::join(uris, " "));
  }
  const Unchecked coordinator{authority_.pem(), {authority_.Issue(Role::kCoordinator, "c")}};
  EXPECT_EQ(Call(Server(coordinator.OfServer()), worker_).caller, "spiffe://lab/worker/w");
}

TEST_F(CredentialsTest, ARenewedServerNeedsNoRestartAndKeepsItsConnections) {
  const Server server(TlsServerCredentialsOf(coordinator_));
  const Client former(server, TlsChannelCredentialsOf(worker_));
  const std::string serial = former.Call().server_serial;
  const CertifiedKey renewed = authority_.Issue(Role::kCoordinator, "c");
  WriteTextFile(coordinator_.key, renewed.key);  // until the next line, the pair does not match
  EXPECT_EQ(Call(server, worker_).server_serial, serial);
  WriteTextFile(coordinator_.certificate, renewed.certificate);
  CallUntil(server, worker_, [&](const Answer& answer) {
    EXPECT_EQ(answer.caller, "spiffe://lab/worker/w") << answer.error;  // at no time refused
    return answer.server_serial == ReadCertificate(renewed.certificate)->serial;
  });
  EXPECT_EQ(former.Call().server_serial, serial);
}

TEST_F(CredentialsTest, ARotationThatStaysHalfDoneRefusesNoCall) {
  const Server server(TlsServerCredentialsOf(coordinator_));
  const std::string renewed = authority_.Issue(Role::kCoordinator, "c").key;
  WriteTextFile(coordinator_.key, renewed.substr(0, renewed.size() / 2));
  WriteTextFile(coordinator_.authority, "");
  // Long enough for two reads of the files by the server.
  const auto end = steady_clock::now() + std::chrono::milliseconds(2500);
  while (steady_clock::now() < end) {
    const Answer answer = Call(server, worker_);
    ASSERT_EQ(answer.caller, "spiffe://lab/worker/w") << answer.error;
  }
}

TEST_F(CredentialsTest, ARenewedClientNeedsNoNewChannelCredentials) {
  const Server server(TlsServerCredentialsOf(coordinator_));
  const CertifiedKey other = foreign_.Issue(Role::kWorker, "w");
  const auto credentials = TlsChannelCredentialsOf(worker_);
  EXPECT_EQ(Client(server, credentials).Call().caller, "spiffe://lab/worker/w");
  // A certificate that this server does not trust shows that the channel uses the new one.
  WriteTlsDirectory(directory_.Child("w"), authority_.pem() + foreign_.pem(), other);
  const auto end = steady_clock::now() + kLimit;
  while (!Client(server, credentials).Call().caller.empty() && steady_clock::now() < end) {
  }
  EXPECT_EQ(Client(server, credentials).Call().caller, "");
}

TEST_F(CredentialsTest, TheAuthorityIsReplacedUnderARunningServer) {
  const Server server(TlsServerCredentialsOf(coordinator_));
  const auto accepted = [](const Answer& answer) { return !answer.caller.empty(); };
  const auto refused = [](const Answer& answer) { return answer.caller.empty(); };
  const TlsFiles moved =
      Write("moved", authority_.pem() + foreign_.pem(), foreign_.Issue(Role::kWorker, "moved"));
  EXPECT_EQ(Call(server, moved).caller, "");
  // First all trust both, then the server's certificate is one of the new authority, and at last
  // the old authority is dropped.
  WriteTextFile(coordinator_.authority, authority_.pem() + foreign_.pem());
  WriteTextFile(worker_.authority, authority_.pem() + foreign_.pem());
  CallUntil(server, moved, accepted);
  EXPECT_TRUE(accepted(Call(server, worker_)));
  const CertifiedKey renewed = foreign_.Issue(Role::kCoordinator, "c");
  WriteTextFile(coordinator_.key, renewed.key);
  WriteTextFile(coordinator_.certificate, renewed.certificate);
  CallUntil(server, moved, [&](const Answer& answer) {
    EXPECT_TRUE(accepted(answer)) << answer.error;
    return answer.server_serial == ReadCertificate(renewed.certificate)->serial;
  });
  EXPECT_TRUE(accepted(Call(server, worker_)));
  WriteTextFile(coordinator_.authority, foreign_.pem());
  CallUntil(server, worker_, refused);
  EXPECT_TRUE(accepted(Call(server, moved)));
}

TEST_F(CredentialsTest, AServerThatBeganWithBadFilesServesOnceTheyAreGood) {
  const std::string good = ReadTlsContents(coordinator_)->certificate;
  WriteTextFile(coordinator_.certificate, good.substr(0, 100));
  const Server server(TlsServerCredentialsOf(coordinator_));
  EXPECT_EQ(Call(server, worker_).caller, "");
  WriteTextFile(coordinator_.certificate, good);
  CallUntil(server, worker_, [](const Answer& answer) { return !answer.caller.empty(); });
}

TEST_F(CredentialsTest, AChannelThatBeganWithBadFilesConnectsOnceTheyAreGood) {
  const Server server(TlsServerCredentialsOf(coordinator_));
  WriteTextFile(worker_.authority, "");
  const auto credentials = TlsChannelCredentialsOf(worker_);
  EXPECT_EQ(Client(server, credentials).Call().caller, "");
  WriteTextFile(worker_.authority, authority_.pem());
  const auto end = steady_clock::now() + kLimit;
  Answer answer;
  while (answer.caller.empty() && steady_clock::now() < end) {
    answer = Client(server, credentials).Call();
  }
  EXPECT_EQ(answer.caller, "spiffe://lab/worker/w") << answer.error;
}

TEST_F(CredentialsTest, TheyEndTheirWatchesWithTheirLastUse) {
  const auto use = [&] {
    const Server server(TlsServerCredentialsOf(coordinator_));
    EXPECT_EQ(Call(server, worker_).caller, "spiffe://lab/worker/w");
  };
  use();
  const size_t before = CountDescriptors();
  for (int i = 0; i < 8; ++i) use();
  // gRPC closes connections some time after their last use.
  const auto end = steady_clock::now() + kLimit;
  while (CountDescriptors() > before && steady_clock::now() < end) {
  }
  EXPECT_LE(CountDescriptors(), before);
}

}  // namespace
}  // namespace troupe
