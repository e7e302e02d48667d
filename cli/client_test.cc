// The client against a coordinator with TLS: which certificates it uses, and the exit codes.
#include "cli/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include "base/security/authority.h"
#include "base/security/authority_files.h"
#include "base/security/certificate.h"
#include "base/temporary_directory.h"
#include "base/text_file.h"
#include "cli/cluster/cluster_file.h"
#include "cli/commands.h"
#include "coordinator/service/server.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ClientTest : public ::testing::Test {
 protected:
  ClientTest() {
    for (const char* name : {"TROUPE_COORDINATOR", "TROUPE_TLS_DIR"}) unsetenv(name);
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
    for (const char* name : {"TROUPE_COORDINATOR", "TROUPE_TLS_DIR"}) unsetenv(name);
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

  // Returns the status of `troupe NAME ARGUMENTS`.
  static Status RunCommand(const std::string& name, const std::vector<std::string>& arguments) {
    for (const Command& command : JobCommands()) {
      if (command.name != name) continue;
      const auto line = command.Parse(arguments);
      if (!line.ok()) return line.status();
      testing::internal::CaptureStdout();
      const auto code = command.run(*line);
      testing::internal::GetCapturedStdout();
      return code.status();
    }
    return NotFound("{}", name);
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
  EXPECT_THAT(ToString(plain), HasSubstr("--tls-dir"));

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
    for (const char* command : {"list", "workers"}) {
      testing::internal::CaptureStderr();
      EXPECT_TRUE(RunCommand(command, {"--coordinator", (*server)->address()}).ok()) << command;
      const std::string shown = testing::internal::GetCapturedStderr();
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
  EXPECT_EQ(find({"--coordinator", "h:1", "--tls-dir", "/given"}).tls, "/given");
  const CoordinatorEndpoint local = find({"--data-dir", directory_.path()});
  EXPECT_EQ(local.address, "127.0.0.1:7");
  EXPECT_EQ(local.tls, std::nullopt);
  EXPECT_EQ(find({"--data-dir", directory_.path(), "--tls-dir", "/given"}).tls, "/given");
  setenv("TROUPE_COORDINATOR", "h:2", 1);
  EXPECT_EQ(find({}).tls, "/certificates");
}

}  // namespace
}  // namespace troupe
