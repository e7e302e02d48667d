// The commands of certificates, from their arguments to their files and their output.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "base/security/certificate.h"
#include "base/security/tls_files.h"
#include "base/temporary_directory.h"
#include "base/text_file.h"
#include "cli/commands.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Outcome {
  ExitCode code = ExitCode::kDone;
  std::string output;
  std::string error;
};

// Runs the command with its first argument as the second word of its name.
Outcome RunCerts(std::vector<std::string> arguments) {
  const std::string name = "certs " + arguments[0];
  arguments.erase(arguments.begin());
  for (const Command& command : CertsCommands()) {
    if (command.name != name) continue;
    const auto line = command.Parse(arguments);
    if (!line.ok()) return {ExitCodeOf(line.status()), "", std::string(Message(line.status()))};
    testing::internal::CaptureStdout();
    const auto code = command.run(*line);
    std::string output = testing::internal::GetCapturedStdout();
    if (code.ok()) return {*code, std::move(output), ""};
    return {ExitCodeOf(code.status()), std::move(output), std::string(Message(code.status()))};
  }
  ADD_FAILURE() << "there is no command " << name;
  return {};
}

class CertsCommandsTest : public testing::Test {
 protected:
  CertsCommandsTest() {
    const Outcome made = RunCerts({"init", authority_, "--cluster", "lab"});
    EXPECT_EQ(made.code, ExitCode::kDone) << made.error;
  }

  Outcome Issue(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"issue", authority_, "--output", output_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunCerts(std::move(arguments));
  }

  const TemporaryDirectory directory_;
  const std::string authority_ = directory_.Child("authority");
  const std::string output_ = directory_.Child("tls");
};

TEST_F(CertsCommandsTest, InitNamesTheFilesAndTheDefaultCluster) {
  const std::string path = directory_.Child("second");
  const Outcome json = RunCerts({"init", path, "-o", "json"});
  EXPECT_EQ(Json::parse(json.output), (Json{{"cluster", "default"},
                                            {"directory", path},
                                            {"ca", path + "/ca.pem"},
                                            {"key", path + "/authority.key"}}));
  EXPECT_THAT(RunCerts({"init", directory_.Child("third"), "--cluster=lab-3"}).output,
              StartsWith("authority of the cluster lab-3 in "));
}

TEST_F(CertsCommandsTest, InitRefusesAnExistingAuthorityAndABadName) {
  const Outcome empty = RunCerts({"init", ""});
  EXPECT_EQ(empty.code, ExitCode::kUsage);
  EXPECT_EQ(empty.error, "argument 1, DIR, is empty");
  const std::string key = *ReadTextFile(authority_ + "/authority.key");
  const Outcome again = RunCerts({"init", authority_});
  EXPECT_EQ(again.code, ExitCode::kUsage);
  EXPECT_EQ(again.error, authority_ + " exists and is not empty");
  EXPECT_EQ(*ReadTextFile(authority_ + "/authority.key"), key);
  const Outcome name = RunCerts({"init", directory_.Child("new"), "--cluster", "a/b"});
  EXPECT_EQ(name.code, ExitCode::kUsage);
  EXPECT_THAT(name.error, HasSubstr("the cluster's name is \"a/b\""));
  EXPECT_EQ(RunCerts({"init"}).code, ExitCode::kUsage);
}

TEST_F(CertsCommandsTest, IssueFillsADirectoryForEachRole) {
  const int64_t now = std::time(nullptr);
  for (const RoleEntry& role : kRoles) {
    const std::string directory = directory_.Child(role.name);
    const Outcome issued = RunCerts({"issue", authority_, "--role", std::string(role.name),
                                     "--name", "n-1", "--output", directory, "-o", "json"});
    ASSERT_EQ(issued.code, ExitCode::kDone) << issued.error;
    const auto files = CheckTlsDirectory(directory, now);
    ASSERT_TRUE(files.ok()) << files.status();
    EXPECT_EQ(files->identity, (Identity{"lab", role.role, "n-1"}));
    const auto facts = ReadCertificate(*ReadTextFile(files->certificate));
    const Json json = Json::parse(issued.output);
    EXPECT_EQ(json, (Json{{"identity", ToUri(files->identity)},
                          {"serial", facts->serial},
                          {"not_before", facts->not_before},
                          {"not_after", facts->not_after},
                          {"directory", directory}}));
    EXPECT_NEAR(static_cast<double>(facts->not_after), static_cast<double>(now) + 90.0 * 86400, 60);
  }
}

TEST_F(CertsCommandsTest, IssueAgainRenewsTheSameIdentityOnly) {
  const std::vector<std::string> worker = {"--role", "worker", "--name", "w", "--days", "2"};
  const Outcome first = Issue(worker);
  EXPECT_THAT(first.output, StartsWith("spiffe://lab/worker/w in " + output_ + ", valid until "));
  const std::string certificate = *ReadTextFile(output_ + "/cert.pem");
  EXPECT_EQ(Issue(worker).code, ExitCode::kDone);
  const std::string renewed = *ReadTextFile(output_ + "/cert.pem");
  EXPECT_NE(renewed, certificate);
  const Outcome other = Issue({"--role", "worker", "--name", "w2"});
  EXPECT_EQ(other.code, ExitCode::kUsage);
  EXPECT_THAT(other.error, HasSubstr("is not a certificate of spiffe://lab/worker/w2"));
  EXPECT_EQ(*ReadTextFile(output_ + "/cert.pem"), renewed);
}

TEST_F(CertsCommandsTest, IssueRefusesBadInputByName) {
  const struct {
    std::vector<std::string> arguments;
    std::string error;
  } kCases[] = {
      {{"--role", "boss", "--name", "n"}, "--role: \"boss\" is not a role: the roles are viewer,"},
      {{"--role", "viewer"}, "--name"},
      {{"--name", "n"}, "--role"},
      {{"--role", "viewer", "--name", "a b"}, "the name is \"a b\""},
      {{"--role", "viewer", "--name", "n", "--days", "0"}, "--days"},
      {{"--role", "viewer", "--name", "n", "--days", "3651"}, "--days"},
      {{"--role", "viewer", "--name", "n", "--host", "h"}, "the role viewer has no use for"},
      {{"--role", "coordinator", "--name", "n", "--host", "h/i"}, "the host \"h/i\""},
  };
  for (const auto& [arguments, error] : kCases) {
    const Outcome refused = Issue(arguments);
    EXPECT_EQ(refused.code, ExitCode::kUsage) << error;
    EXPECT_THAT(refused.error, HasSubstr(error));
    EXPECT_EQ(refused.output, "");
    EXPECT_FALSE(std::filesystem::exists(output_)) << error;
  }
  const Outcome empty =
      RunCerts({"issue", authority_, "--role", "viewer", "--name", "n", "--output", ""});
  EXPECT_EQ(empty.code, ExitCode::kUsage);
  const Outcome absent = RunCerts({"issue", directory_.Child("absent"), "--role", "viewer",
                                   "--name", "n", "--output", output_});
  EXPECT_EQ(absent.code, ExitCode::kUsage);
  EXPECT_THAT(absent.error, HasSubstr("`troupe certs init` makes an authority"));
}

TEST_F(CertsCommandsTest, IssueTakesSeveralHostsOfACoordinator) {
  const Outcome issued =
      Issue({"--role", "coordinator", "--name", "c", "--host", "node-1", "--host", "10.0.0.7"});
  EXPECT_EQ(issued.code, ExitCode::kDone) << issued.error;
}

}  // namespace
}  // namespace troupe
