// The commands with which a worker joins, against a coordinator with an authority.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/security/authority_files.h"
#include "base/security/join_token.h"
#include "base/temporary_directory.h"
#include "base/text_file.h"
#include "cli/commands.h"
#include "coordinator/service/server.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct JoinOutcome {
  Status status;
  std::string output;

  ExitCode code() const { return ExitCodeOf(status); }
};

// Runs `troupe certs NAME ARGUMENTS`.
JoinOutcome RunJoin(const std::string& name, const std::vector<std::string>& arguments) {
  for (const Command& command : JoinCommands()) {
    if (command.name != "certs " + name) continue;
    const auto line = command.Parse(arguments);
    if (!line.ok()) return {line.status(), ""};
    testing::internal::CaptureStdout();
    const auto code = command.run(*line);
    return {code.status(), testing::internal::GetCapturedStdout()};
  }
  return {Internal("there is no command {}", name), ""};
}

class JoinCommandsTest : public ::testing::Test {
 protected:
  JoinCommandsTest() {
    for (const char* name : {"TROUPE_COORDINATOR", "TROUPE_TLS_DIR"}) unsetenv(name);
    server_ = StartServer("authority");
    Issue("authority", Role::kOperator);
  }

  std::string Directory(const std::string& name) const { return directory_.Child(name); }

  std::string Issue(const std::string& authority, Role role) const {
    const std::string output = Directory(fmt::format("{}-{}", authority, RoleName(role)));
    const auto issued = IssueTlsDirectory(
        Directory(authority), {.role = role, .name = "ann", .days = 1}, output, std::time(nullptr));
    EXPECT_TRUE(issued.ok()) << ToString(issued.status());
    return output;
  }

  // Starts the coordinator of a new authority.
  std::unique_ptr<Server> StartServer(const std::string& authority) const {
    const Status made = WriteNewAuthority(Directory(authority), "lab", std::time(nullptr));
    EXPECT_TRUE(made.ok()) << ToString(made);
    ServerOptions options;
    options.data_directory = Directory(authority + "-catalog");
    options.tls = *CheckTlsDirectory(Issue(authority, Role::kCoordinator), std::time(nullptr));
    options.enrollment = EnrollmentOptions{.authority = Directory(authority)};
    auto server = Server::Start(options);
    EXPECT_TRUE(server.ok()) << ToString(server.status());
    return *std::move(server);
  }

  // Makes a token and returns the file that has it.
  std::string TokenFile(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--coordinator", server_->address(), "--tls-dir",
                             Directory("authority-operator")});
    const JoinOutcome made = RunJoin("token", more);
    EXPECT_TRUE(made.status.ok()) << ToString(made.status);
    std::ofstream(Directory("token")) << made.output;
    return Directory("token");
  }

  JoinOutcome Join(const std::string& address, const std::string& token_file,
                   std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--coordinator", address, "--token-file", token_file, "--output",
                             Directory("tls")});
    return RunJoin("join", more);
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<Server> server_;
};

TEST_F(JoinCommandsTest, AWorkerJoinsWithATokenOnce) {
  const std::string token = TokenFile({"--name", "worker-0"});
  EXPECT_THAT(*ReadTextFile(token), StartsWith("troupe-join:1:lab:"));
  const JoinOutcome joined = Join(server_->address(), token, {"-o", "json"});
  ASSERT_TRUE(joined.status.ok()) << ToString(joined.status);
  const auto files = CheckTlsDirectory(Directory("tls"), std::time(nullptr));
  ASSERT_TRUE(files.ok()) << ToString(files.status());
  EXPECT_EQ(files->identity, (Identity{"lab", Role::kWorker, "worker-0"}));
  EXPECT_EQ(Json::parse(joined.output).at("identity"), "spiffe://lab/worker/worker-0");
  EXPECT_EQ(*ReadTextFile(files->authority), *ReadTextFile(Directory("authority/ca.pem")));
  struct stat info {};
  EXPECT_EQ(stat(files->key.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777u, 0600u);

  const std::string certificate = *ReadTextFile(files->certificate);
  const JoinOutcome again = Join(server_->address(), token);
  EXPECT_EQ(again.code(), ExitCode::kFailed);
  EXPECT_THAT(ToString(again.status), HasSubstr("was used at"));
  EXPECT_EQ(*ReadTextFile(files->certificate), certificate);
  // A second token renews the directory.
  EXPECT_TRUE(Join(server_->address(), TokenFile(), {"--name", "worker-0"}).status.ok());
  EXPECT_NE(*ReadTextFile(files->certificate), certificate);
}

TEST_F(JoinCommandsTest, ACoordinatorOfAnotherAuthorityIsRefusedBeforeItSeesTheToken) {
  const std::string token = TokenFile();
  const auto impostor = StartServer("foreign");
  const JoinOutcome refused = Join(impostor->address(), token, {"--name", "w"});
  EXPECT_EQ(refused.code(), ExitCode::kUsage);
  EXPECT_THAT(ToString(refused.status),
              HasSubstr(fmt::format("the coordinator at {} is not of the cluster that made this "
                                    "token",
                                    impostor->address())));
  EXPECT_FALSE(std::filesystem::exists(Directory("tls")));
  EXPECT_TRUE(Join(server_->address(), token, {"--name", "w"}).status.ok());
}

TEST_F(JoinCommandsTest, AnImpostorWithTheCertificateOfAnAuthorityGetsNoToken) {
  // It hands out the right authority, which has not signed its own certificate.
  const std::string token = TokenFile();
  ASSERT_TRUE(WriteNewAuthority(Directory("foreign"), "lab", std::time(nullptr)).ok());
  ServerOptions options;
  options.data_directory = Directory("foreign-catalog");
  options.tls = *CheckTlsDirectory(Issue("foreign", Role::kCoordinator), std::time(nullptr));
  options.enrollment = EnrollmentOptions{.authority = Directory("foreign")};
  const std::string trusted = *ReadTextFile(Directory("foreign/ca.pem"));
  std::ofstream(Directory("foreign/ca.pem"))
      << trusted << *ReadTextFile(Directory("authority/ca.pem"));
  auto impostor = Server::Start(options);
  ASSERT_TRUE(impostor.ok()) << ToString(impostor.status());
  const JoinOutcome refused = Join((*impostor)->address(), token, {"--name", "w"});
  EXPECT_EQ(refused.code(), ExitCode::kUnreachable) << ToString(refused.status);
  EXPECT_EQ(
      Message(refused.status),
      fmt::format("cannot reach the coordinator at {}; if it is running, its certificate is not "
                  "valid or not signed by the authority of the token",
                  (*impostor)->address()));
  EXPECT_FALSE(std::filesystem::exists(Directory("tls")));
}

TEST_F(JoinCommandsTest, BadInputIsNamed) {
  const std::string token = TokenFile({"--name", "worker-0"});
  const auto expect = [&](const JoinOutcome& outcome, ExitCode code, const std::string& reason) {
    EXPECT_EQ(outcome.code(), code) << ToString(outcome.status);
    EXPECT_THAT(ToString(outcome.status), HasSubstr(reason));
    EXPECT_FALSE(std::filesystem::exists(Directory("tls")));
  };
  const std::string address = server_->address();
  expect(Join(address, Directory("absent")), ExitCode::kUsage, "cannot be read or is empty");
  std::ofstream(Directory("bad")) << "secret-text";
  expect(Join(address, Directory("bad")), ExitCode::kUsage, "it is not a join token");
  EXPECT_EQ(ToString(Join(address, Directory("bad")).status).find("secret-text"),
            std::string::npos);
  expect(Join("nowhere", token), ExitCode::kUsage, "--coordinator");
  expect(Join(address, token, {"--name", "worker-1"}), ExitCode::kFailed,
         "for the worker \"worker-0\", not for \"worker-1\"");
  const JoinOutcome nobody = Join("127.0.0.1:1", token);
  expect(nobody, ExitCode::kUnreachable, "");
  EXPECT_EQ(Message(nobody.status),
            "cannot reach the coordinator at 127.0.0.1:1; if it is running, it accepts no "
            "connections with TLS");
  expect(RunJoin("join", {"--coordinator", address}), ExitCode::kUsage, "--token-file");
  const JoinOutcome minutes = RunJoin("token", {"--minutes", "1441"});
  expect(minutes, ExitCode::kUsage, "--minutes");
}

TEST_F(JoinCommandsTest, ATokenThatTheCoordinatorCannotMakeNowIsAFailure) {
  std::filesystem::rename(Directory("authority"), Directory("elsewhere"));
  const JoinOutcome refused = RunJoin(
      "token", {"--coordinator", server_->address(), "--tls-dir", Directory("authority-operator")});
  EXPECT_EQ(refused.code(), ExitCode::kFailed);
  EXPECT_THAT(ToString(refused.status), HasSubstr("--authority: "));
}

TEST_F(JoinCommandsTest, AnOutputThatCannotBeUsedLeavesTheToken) {
  const std::string token = TokenFile();
  const auto expect = [&](const std::string& output, const std::string& name,
                          const std::string& reason) {
    std::vector<std::string> arguments = {"--coordinator", server_->address(), "--token-file",
                                          token,           "--output",         output};
    if (!name.empty()) arguments.insert(arguments.end(), {"--name", name});
    const JoinOutcome refused = RunJoin("join", arguments);
    EXPECT_EQ(refused.code(), ExitCode::kUsage) << ToString(refused.status);
    EXPECT_THAT(ToString(refused.status), HasSubstr(reason));
  };
  std::ofstream(Directory("job.yaml")) << "x";
  expect(Directory("job.yaml"), "w", "job.yaml");
  expect(Directory("job.yaml/tls"), "w", "job.yaml");
  expect("/proc/troupe/tls", "w", "nothing can be written to /proc");
  std::filesystem::create_directory(Directory("full"));
  std::ofstream(Directory("full/notes")) << "x";
  expect(Directory("full"), "w", "exists and is not empty");
  std::ofstream(Directory("full/cert.pem")) << "x";
  expect(Directory("full"), "w", "is not a certificate");
  expect(Directory("authority-operator"), "", "has the certificate of spiffe://lab/operator/ann");
  expect(Issue("authority", Role::kWorker), "w", "not one of spiffe://lab/worker/w:");
  EXPECT_TRUE(Join(server_->address(), token, {"--name", "w"}).status.ok());
  EXPECT_TRUE(Join(server_->address(), TokenFile()).status.ok()) << "the name is in the directory";
}

TEST_F(JoinCommandsTest, OnlyAnOperatorMakesTokens) {
  const JoinOutcome refused = RunJoin("token", {"--coordinator", server_->address(), "--tls-dir",
                                                Issue("authority", Role::kSubmitter)});
  EXPECT_EQ(refused.code(), ExitCode::kFailed);
  EXPECT_THAT(ToString(refused.status),
              AllOf(HasSubstr("CreateJoinToken"), HasSubstr("requires the role operator")));
}

}  // namespace
}  // namespace troupe
