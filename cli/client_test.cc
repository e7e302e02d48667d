// The client against a coordinator with TLS: which certificates and tokens it uses, and the exit
// codes.
#include "cli/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/security/authority.h"
#include "base/security/authority_files.h"
#include "base/security/certificate.h"
#include "base/security/user_token.h"
#include "base/temporary_directory.h"
#include "base/text_file.h"
#include "cli/cluster/cluster_file.h"
#include "cli/commands.h"
#include "coordinator/service/server.h"
#include "google/rpc/status.pb.h"
#include "plan/job/violation.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kVariables[] = {"TROUPE_COORDINATOR", "TROUPE_TLS_DIR", "TROUPE_TOKEN_FILE"};

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() {
    for (const char* name : kVariables) unsetenv(name);
    const Status made = WriteNewAuthority(Directory("authority"), "lab", std::time(nullptr));
    EXPECT_TRUE(made.ok()) << ToString(made);
    ServerOptions options;
    options.data_directory = Directory("catalog");
    const auto tls = CheckTlsDirectory(Issue(Role::kCoordinator), std::time(nullptr));
    EXPECT_TRUE(tls.ok()) << ToString(tls.status());
    options.tls = *tls;
    auto server = Server::Start(options);
    EXPECT_TRUE(server.ok()) << ToString(server.status());
    server_ = *std::move(server);
  }
  ~ClientTest() override {
    for (const char* name : kVariables) unsetenv(name);
  }

  std::string Directory(const std::string& name) const { return directory_.Child(name); }

  // Makes the TLS directory of a role.
  std::string Issue(Role role, const std::string& authority = "authority") const {
    const std::string output = Directory(fmt::format("{}-{}", authority, RoleName(role)));
    const auto issued = IssueTlsDirectory(
        Directory(authority), {.role = role, .name = "ann", .days = 1}, output, std::time(nullptr));
    EXPECT_TRUE(issued.ok()) << ToString(issued.status());
    return output;
  }

  // Returns the status of `troupe NAME ARGUMENTS`; `output` and `errors` get what it prints.
  static Status RunCommand(const std::string& name, const std::vector<std::string>& arguments,
                           std::string* output = nullptr, std::string* errors = nullptr) {
    for (const auto& list : {JobCommands(), TokensCommands(), CertsCommands()}) {
      for (const Command& command : list) {
        if (command.name != name) continue;
        const auto line = command.Parse(arguments);
        if (!line.ok()) return line.status();
        testing::internal::CaptureStdout();
        testing::internal::CaptureStderr();
        const auto code = command.run(*line);
        const std::string printed = testing::internal::GetCapturedStdout();
        const std::string reported = testing::internal::GetCapturedStderr();
        if (output != nullptr) *output = printed;
        if (errors != nullptr) *errors = reported;
        return code.status();
      }
    }
    return NotFound("{}", name);
  }

  // Returns the arguments of a command of the operator, after `arguments`.
  std::vector<std::string> AsOperator(std::vector<std::string> arguments) const {
    for (const std::string& more : {std::string("--coordinator"), server_->address(),
                                    std::string("--tls-dir"), Issue(Role::kOperator)})
      arguments.push_back(more);
    return arguments;
  }

  // Creates a token and returns the path of its file.
  std::string CreateToken(const std::string& role, const std::string& file) const {
    std::string text;
    const Status created = RunCommand(
        "tokens create", AsOperator({"--name", "ann", "--role", role, "--for", "30d"}), &text);
    EXPECT_TRUE(created.ok()) << ToString(created);
    std::ofstream(Directory(file)) << text;
    std::filesystem::permissions(Directory(file), std::filesystem::perms::owner_read);
    return Directory(file);
  }

  // Makes a TLS directory that has ca.pem alone.
  std::string AuthorityAlone() const {
    std::filesystem::create_directory(Directory("ca"));
    std::filesystem::copy_file(Directory("authority/ca.pem"), Directory("ca/ca.pem"),
                               std::filesystem::copy_options::overwrite_existing);
    return Directory("ca");
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Server> server_;
};

TEST_F(ClientTest, ACommandWithACertificateIsServedWithinItsRole) {
  const std::string viewer = Issue(Role::kViewer);
  const Status listed =
      RunCommand("list", {"--coordinator", server_->address(), "--tls-dir", viewer});
  EXPECT_TRUE(listed.ok()) << ToString(listed);
  setenv("TROUPE_COORDINATOR", server_->address().c_str(), 1);
  setenv("TROUPE_TLS_DIR", viewer.c_str(), 1);
  EXPECT_TRUE(RunCommand("list", {}).ok());
  const Status refused = RunCommand("cancel", {"a"});
  EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(ToString(refused),
              AllOf(HasSubstr("CancelJob"), HasSubstr("requires the role submitter or operator"),
                    HasSubstr("ann has the role viewer")));
  EXPECT_EQ(ExitCodeOf(refused), ExitCode::kFailed);
}

TEST_F(ClientTest, ACommandWithoutAValidCertificateDoesNotReachTheCoordinator) {
  const std::vector<std::string> here = {"--coordinator", server_->address()};
  const Status plain = RunCommand("list", here);
  EXPECT_EQ(ExitCodeOf(plain), ExitCode::kUnreachable) << ToString(plain);
  EXPECT_EQ(Message(plain),
            fmt::format("cannot reach the coordinator at {}; if it is running, it may accept only "
                        "connections with TLS (--tls-dir)",
                        server_->address()));

  ASSERT_TRUE(WriteNewAuthority(Directory("foreign"), "lab", std::time(nullptr)).ok());
  const Status foreign =
      RunCommand("list", {here[0], here[1], "--tls-dir", Issue(Role::kOperator, "foreign")});
  EXPECT_EQ(ExitCodeOf(foreign), ExitCode::kUnreachable) << ToString(foreign);
  EXPECT_THAT(ToString(foreign), HasSubstr("is not accepted"));
}

TEST_F(ClientTest, ACommandWarnsOfACoordinatorThatRunsInsecure) {
  for (const bool insecure : {true, false}) {
    ServerOptions options;
    options.data_directory = Directory(insecure ? "open" : "local");
    options.insecure = insecure;
    const auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << ToString(server.status());
    for (const std::string command : {"list", "workers", "describe", "delete", "logs"}) {
      std::vector<std::string> arguments = {"--coordinator", (*server)->address()};
      const bool is_of_a_job = command != "list" && command != "workers";
      if (is_of_a_job) arguments.push_back("nobody");
      std::string shown;
      const Status done = RunCommand(command, arguments, nullptr, &shown);
      EXPECT_EQ(done.code(), is_of_a_job ? StatusCode::kNotFound : StatusCode::kOk)
          << command << ": " << done;
      const std::string warning = fmt::format(
          "warning: the coordinator at {} runs with --insecure: whoever reaches it has "
          "every role\n",
          (*server)->address());
      EXPECT_EQ(shown.find(warning) != shown.npos, insecure) << command << ": " << shown;
    }
  }
}

TEST_F(ClientTest, ARefusalByTlsStatesTheTimeOfTheCertificateAndTheClock) {
  const std::string viewer = Issue(Role::kViewer);
  const auto facts = ReadCertificate(*ReadTextFile(viewer + "/cert.pem"));
  ASSERT_TRUE(facts.ok());
  server_->Stop();
  const Status refused =
      RunCommand("list", {"--coordinator", server_->address(), "--tls-dir", viewer});
  EXPECT_EQ(ExitCodeOf(refused), ExitCode::kUnreachable);
  EXPECT_THAT(ToString(refused),
              AllOf(HasSubstr("is not accepted: this command's is valid from " +
                              UtcText(facts->not_before) + " to " + UtcText(facts->not_after)),
                    HasSubstr(" here; a host whose clock")));
}

TEST_F(ClientTest, AnExpiredCertificateIsNamedBeforeAnyCall) {
  const std::string directory = Issue(Role::kOperator);
  const auto text = [this](const std::string& name) { return *ReadTextFile(Directory(name)); };
  const auto expired =
      SignCertificate({text("authority/authority.pem"), text("authority/authority.key")},
                      {.common_name = "ann",
                       .uris = {"spiffe://lab/operator/ann"},
                       .not_before = std::time(nullptr) - 60,
                       .not_after = std::time(nullptr) - 30});
  ASSERT_TRUE(expired.ok()) << ToString(expired.status());
  std::ofstream(directory + "/cert.pem") << expired->certificate;
  std::ofstream(directory + "/key.pem") << expired->key;
  const Status refused =
      RunCommand("list", {"--coordinator", server_->address(), "--tls-dir", directory});
  EXPECT_EQ(ExitCodeOf(refused), ExitCode::kUnreachable) << ToString(refused);
  EXPECT_THAT(ToString(refused), AllOf(HasSubstr(directory), HasSubstr("expired")));
}

TEST_F(ClientTest, AnUnusableTlsDirectoryIsBadInput) {
  for (const std::string& directory :
       {std::string(), Directory("absent"), Directory("authority")}) {
    const Status refused =
        RunCommand("list", {"--coordinator", server_->address(), "--tls-dir", directory});
    EXPECT_EQ(ExitCodeOf(refused), ExitCode::kUsage) << ToString(refused);
  }
}

TEST_F(ClientTest, TheCertificatesOfTheEnvironmentAreNotForALocalCluster) {
  setenv("TROUPE_TLS_DIR", "/certificates", 1);
  setenv("TROUPE_TOKEN_FILE", "/token", 1);
  ASSERT_TRUE(WriteClusterFile(directory_.path(), {.coordinator_address = "127.0.0.1:7"}).ok());
  const auto find = [](const std::vector<std::string>& arguments) {
    for (const Command& command : JobCommands()) {
      if (command.name != "list") continue;
      const auto line = command.Parse(arguments);
      EXPECT_TRUE(line.ok()) << ToString(line.status());
      const auto found = FindCoordinator(*line);
      EXPECT_TRUE(found.ok()) << ToString(found.status());
      return *found;
    }
    return CoordinatorEndpoint();
  };
  EXPECT_EQ(find({"--coordinator", "h:1"}).tls, "/certificates");
  EXPECT_EQ(find({"--coordinator", "h:1"}).token_file, "/token");
  EXPECT_EQ(find({"--coordinator", "h:1", "--token-file", "/mine"}).token_file, "/mine");
  EXPECT_EQ(find({"--coordinator", "h:1", "--tls-dir", "/given"}).tls, "/given");
  const CoordinatorEndpoint local = find({"--data-dir", directory_.path()});
  EXPECT_EQ(local.address, "127.0.0.1:7");
  EXPECT_EQ(local.tls, std::nullopt);
  EXPECT_EQ(local.token_file, std::nullopt);
  EXPECT_EQ(find({"--data-dir", directory_.path(), "--tls-dir", "/given"}).tls, "/given");
  setenv("TROUPE_COORDINATOR", "h:2", 1);
  EXPECT_EQ(find({}).tls, "/certificates");
}

TEST_F(ClientTest, ACommandWithATokenIsServedWithinItsRole) {
  const std::string file = CreateToken("viewer", "token");
  const std::vector<std::string> flags = {"--coordinator",  server_->address(), "--tls-dir",
                                          AuthorityAlone(), "--token-file",     file};
  const Status listed = RunCommand("list", flags);
  EXPECT_TRUE(listed.ok()) << ToString(listed);
  // A certificate in the directory is not used.
  setenv("TROUPE_COORDINATOR", server_->address().c_str(), 1);
  setenv("TROUPE_TLS_DIR", Issue(Role::kOperator).c_str(), 1);
  setenv("TROUPE_TOKEN_FILE", file.c_str(), 1);
  EXPECT_TRUE(RunCommand("list", {}).ok());
  const Status refused = RunCommand("cancel", {"a"});
  EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied) << ToString(refused);
  EXPECT_THAT(ToString(refused), HasSubstr("ann has the role viewer"));
  EXPECT_EQ(RunCommand("tokens list", {}).code(), StatusCode::kPermissionDenied);
}

TEST_F(ClientTest, TokensAreListedWithoutTheirSecretsAndRevokedByTheEndOfTheirIds) {
  const std::string file = CreateToken("submitter", "token");
  const std::string text = *ReadTokenFile(file);
  const UserTokenParts parts = *ParseUserToken(text);
  std::string output;
  ASSERT_TRUE(RunCommand("tokens list", AsOperator({}), &output).ok());
  const std::string end = parts.id.substr(parts.id.size() - 4);
  EXPECT_THAT(output, AllOf(HasSubstr("…" + end), HasSubstr("ann"), HasSubstr("submitter"),
                            HasSubstr("EXPIRES"), Not(HasSubstr(parts.secret))));
  ASSERT_TRUE(RunCommand("tokens list", AsOperator({"-o", "json"}), &output).ok());
  EXPECT_THAT(output, AllOf(HasSubstr(parts.id), HasSubstr("spiffe://lab/operator/ann"),
                            Not(HasSubstr(parts.secret))));
  ASSERT_TRUE(RunCommand("tokens revoke", AsOperator({end}), &output).ok());
  EXPECT_THAT(output, HasSubstr("REVOKED"));
  const Status refused = RunCommand("list", {"--coordinator", server_->address(), "--tls-dir",
                                             AuthorityAlone(), "--token-file", file});
  EXPECT_EQ(ExitCodeOf(refused), ExitCode::kUnreachable) << ToString(refused);
  EXPECT_THAT(ToString(refused), AllOf(HasSubstr("was revoked"), Not(HasSubstr(parts.secret))));
  EXPECT_EQ(ExitCodeOf(RunCommand("tokens revoke", AsOperator({"0123456789abcdef"}))),
            ExitCode::kNotFound);
}

TEST_F(ClientTest, ABadTokenIsRefusedBeforeAnyCall) {
  const std::string file = CreateToken("viewer", "token");
  const auto refusal = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"--coordinator", server_->address()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Status status = RunCommand("list", arguments);
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kUsage) << ToString(status);
    return ToString(status);
  };
  EXPECT_THAT(refusal({"--token-file", file}), HasSubstr("over TLS only"));
  const std::string ca = AuthorityAlone();
  EXPECT_THAT(refusal({"--tls-dir", ca, "--token-file", ""}), HasSubstr("--token-file is empty"));
  EXPECT_THAT(refusal({"--tls-dir", ca, "--token-file", Directory("absent")}), HasSubstr("absent"));
  EXPECT_THAT(refusal({"--tls-dir", Directory("absent"), "--token-file", file}),
              HasSubstr("ca.pem"));
  std::filesystem::permissions(file, std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  EXPECT_THAT(refusal({"--tls-dir", ca, "--token-file", file}), HasSubstr("chmod 600"));
}

TEST_F(ClientTest, ATokenIsCreatedForATimeAndARoleThatExist) {
  const auto refusal = [this](const std::string& role, const std::string& time) {
    const Status status =
        RunCommand("tokens create", AsOperator({"--name", "ann", "--role", role, "--for", time}));
    EXPECT_EQ(ExitCodeOf(status), ExitCode::kUsage) << ToString(status);
    return ToString(status);
  };
  for (const std::string time : {"", "30", "d", "0d", "30x", "all", "99999999999d"})
    EXPECT_THAT(refusal("viewer", time), HasSubstr("--for is \"" + time + "\""));
  EXPECT_THAT(refusal("viewer", "4000d"), HasSubstr("lifetime_seconds"));
  EXPECT_THAT(refusal("worker", "1d"), HasSubstr("needs a certificate"));
  EXPECT_THAT(refusal("boss", "1d"), HasSubstr("is not a role"));
}

TEST_F(ClientTest, ARevokedCertificateIsListedAndRefused) {
  const std::string viewer = Issue(Role::kViewer);
  const std::vector<std::string> flags = {"--coordinator", server_->address(), "--tls-dir", viewer};
  ASSERT_TRUE(RunCommand("list", flags).ok());
  const std::string serial = ReadCertificate(*ReadTextFile(viewer + "/cert.pem"))->serial;
  std::string output;
  ASSERT_TRUE(RunCommand("certs revoke", AsOperator({"--serial", serial}), &output).ok());
  EXPECT_THAT(output, HasSubstr("REVOKED"));
  ASSERT_TRUE(RunCommand("certs revoke", AsOperator({"--identity", "spiffe://lab/worker/w"})).ok());
  ASSERT_TRUE(RunCommand("certs revoked", AsOperator({"-o", "json"}), &output).ok());
  EXPECT_THAT(output, AllOf(HasSubstr("\"identity\":\"spiffe://lab/worker/w\""),
                            HasSubstr("\"revoked_by\":\"spiffe://lab/operator/ann\"")));
  const Status refused = RunCommand("list", flags);
  EXPECT_EQ(ExitCodeOf(refused), ExitCode::kUnreachable) << ToString(refused);
  EXPECT_THAT(ToString(refused), HasSubstr("was revoked at"));
  for (const std::vector<std::string>& bad :
       {std::vector<std::string>{},
        {"--serial", "xyz"},
        {"--identity", "ann"},
        {"--serial", "1", "--identity", "spiffe://lab/worker/w"}}) {
    EXPECT_EQ(ExitCodeOf(RunCommand("certs revoke", AsOperator(bad))), ExitCode::kUsage);
  }
}

// A coordinator whose lists have no end.
class Endless final : public v1::JobService::Service {
 public:
  int calls = 0;

 private:
  grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest*,
                        v1::ListJobsResponse* response) override {
    // The tokens differ from their neighbours.
    response->set_next_page_token(++calls % 2 == 0 ? "a" : "b");
    return grpc::Status::OK;
  }
};

TEST_F(ClientTest, AListWhosePageTokensComeAgainEndsWithAnError) {
  Endless endless;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&endless);
  const auto server = builder.BuildAndStart();
  const Status refused = RunCommand("list", {"--coordinator", fmt::format("127.0.0.1:{}", port)});
  EXPECT_EQ(ExitCodeOf(refused), ExitCode::kFailed);
  EXPECT_THAT(ToString(refused), HasSubstr("repeats the page token \"b\""));
  EXPECT_EQ(endless.calls, 3);
  server->Shutdown();
}

TEST(GrpcErrorTest, ViolationsCrossGrpcUnchanged) {
  Violations violations;
  violations.Add("training.steps", "is 0");
  const Status sent = violations.ToStatus();
  google::rpc::Status details;
  auto* detail = details.add_details();
  detail->set_type_url(kBadRequestTypeUrl);
  detail->set_value(std::string(*sent.GetPayload(kBadRequestTypeUrl)));
  const Status received = FromGrpcStatus(grpc::Status(
      grpc::StatusCode::INVALID_ARGUMENT, "training.steps is 0", details.SerializeAsString()));
  EXPECT_EQ(received, OfCoordinator(sent));
  EXPECT_EQ(ViolationsOf(received)[0].field, "training.steps");
}

TEST(GrpcErrorTest, AnErrorWithoutAMessageHasText) {
  EXPECT_EQ(Message(FromGrpcStatus(grpc::Status(grpc::StatusCode::INTERNAL, ""))),
            "INTERNAL, without a reason");
}

}  // namespace
}  // namespace troupe
