// Clients of every kind against a coordinator with TLS, over the loopback, for tests.
#ifndef TROUPE_COORDINATOR_SERVICE_ACCESS_CALLS_TEST_H_
#define TROUPE_COORDINATOR_SERVICE_ACCESS_CALLS_TEST_H_

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/audit/audit_chain.h"
#include "base/clock.h"
#include "base/security/authority.h"
#include "base/security/authority_files.h"
#include "base/security/credentials.h"
#include "base/temporary_directory.h"
#include "coordinator/service/server.h"
#include "coordinator/test_clock.h"

namespace troupe {

inline constexpr std::chrono::seconds kAccessCallLimit{10};

// The outcome of one call.
struct Outcome {
  grpc::Status status;  // CANCELLED after a response
  bool answered = false;
  std::string response;  // the first one, serialised

  bool permitted() const {
    const grpc::StatusCode code = status.error_code();
    return code != grpc::StatusCode::PERMISSION_DENIED &&
           code != grpc::StatusCode::UNAUTHENTICATED && code != grpc::StatusCode::UNAVAILABLE &&
           code != grpc::StatusCode::UNIMPLEMENTED && code != grpc::StatusCode::DEADLINE_EXCEEDED;
  }
};

// Calls any method with one serialised request, and ends the call after the first response.
inline Outcome CallAny(const std::shared_ptr<grpc::Channel>& channel, const std::string& rpc,
                       const std::string& request = "") {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kAccessCallLimit);
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto stream = stub.PrepareCall(&context, rpc, &queue);
  stream->StartCall(nullptr);
  next();
  const grpc::Slice slice(request);
  stream->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
  next();
  Outcome outcome;
  grpc::ByteBuffer buffer;
  stream->Read(&buffer, nullptr);
  if (next()) {
    outcome.answered = true;
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(buffer.Dump(&slices).ok());
    for (const grpc::Slice& part : slices)
      outcome.response.append(reinterpret_cast<const char*>(part.begin()), part.size());
    context.TryCancel();
  }
  stream->Finish(&outcome.status, nullptr);
  next();
  queue.Shutdown();
  while (next()) {
  }
  return outcome;
}

class AccessTest : public ::testing::Test {
 protected:
  AccessTest() {
    const Status made = WriteNewAuthority(Directory("authority"), "lab", Now());
    EXPECT_TRUE(made.ok()) << ToString(made);
    for (const RoleEntry& entry : kRoles) Issue(entry.role, "ann");
  }

  static int64_t Now() { return WallSeconds(SystemClock()); }
  std::string Directory(const std::string& name) const { return directory_.Child(name); }

  // The TLS directory of the role and name, which is made if it is absent.
  TlsFiles Issue(Role role, const std::string& name) {
    const std::string output = Directory(fmt::format("{}-{}", RoleName(role), name));
    const auto issued = IssueTlsDirectory(Directory("authority"),
                                          {.role = role, .name = name, .days = 1}, output, Now());
    EXPECT_TRUE(issued.ok()) << ToString(issued.status());
    const auto files = CheckTlsDirectory(output, Now());
    EXPECT_TRUE(files.ok()) << ToString(files.status());
    return *files;
  }

  void Start(const std::string& listen = "127.0.0.1:0", const std::string& metrics = "") {
    ServerOptions options;
    options.listen = listen;
    options.metrics_listen = metrics;
    options.data_directory = Directory("catalog");
    options.detection_seconds = 1;
    options.tls = Issue(Role::kCoordinator, "ann");
    options.clock = &clock_;
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << ToString(server.status());
    server_ = *std::move(server);
  }

  std::string Address() const { return fmt::format("127.0.0.1:{}", server_->port()); }

  std::shared_ptr<grpc::Channel> ChannelOf(Role role, const std::string& name = "ann") {
    return grpc::CreateChannel(Address(), TlsChannelCredentialsOf(Issue(role, name)));
  }

  // The channel of a client with any certificate, or with none, which accepts any server. `call`
  // adds credentials to each call.
  std::shared_ptr<grpc::Channel> ChannelWith(
      const std::optional<CertifiedKey>& certified,
      const std::shared_ptr<grpc::CallCredentials>& call = nullptr) const {
    using namespace grpc::experimental;  // NOLINT: all of TLS is experimental
    std::vector<IdentityKeyCertPair> pairs;
    if (certified) pairs.push_back({certified->key, certified->certificate});
    TlsChannelCredentialsOptions options;
    options.set_certificate_provider(
        std::make_shared<StaticDataCertificateProvider>(Text("authority/ca.pem"), pairs));
    options.watch_root_certs();
    if (certified) options.watch_identity_key_cert_pairs();
    options.set_check_call_host(false);
    options.set_certificate_verifier(std::make_shared<NoOpCertificateVerifier>());
    const auto credentials = TlsCredentials(options);
    return grpc::CreateChannel(
        Address(),
        call == nullptr ? credentials : grpc::CompositeChannelCredentials(credentials, call));
  }

  std::string Text(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(Directory(name)).rdbuf();
    return text.str();
  }

  // A certificate with these URIs, signed by the authority in the directory `authority`.
  CertifiedKey Certify(const std::vector<std::string>& uris, int64_t not_before, int64_t not_after,
                       const std::string& authority = "authority") const {
    auto certified = SignCertificate(
        {Text(authority + "/authority.pem"), Text(authority + "/authority.key")},
        {.common_name = "ann", .uris = uris, .not_before = not_before, .not_after = not_after});
    EXPECT_TRUE(certified.ok()) << ToString(certified.status());
    return *std::move(certified);
  }

  // The records of the audit log, whose chain is checked.
  std::vector<nlohmann::json> Records() const {
    std::vector<nlohmann::json> records;
    std::istringstream lines(Text("catalog/audit.log"));
    AuditHead head;
    for (std::string line; std::getline(lines, line);) {
      const Status follows = FollowAuditLine(line, &head);
      EXPECT_TRUE(follows.ok()) << ToString(follows);
      records.push_back(nlohmann::json::parse(line));
    }
    return records;
  }

  // Expects that the last record is of a refusal.
  void ExpectRefusalRecorded(const std::string& identity, const std::string& rpc) const {
    const auto records = Records();
    ASSERT_THAT(records, ::testing::Not(::testing::IsEmpty()));
    EXPECT_EQ(records.back().at("outcome"), "DENIED");
    EXPECT_EQ(records.back().at("identity"), identity);
    EXPECT_EQ(records.back().at("rpc"), rpc);
    EXPECT_NE(records.back().at("reason"), "");
  }

  TemporaryDirectory directory_;
  ShiftedClock clock_;  // the server's
  std::unique_ptr<Server> server_;
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_ACCESS_CALLS_TEST_H_
