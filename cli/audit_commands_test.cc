#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/audit/audit_chain.h"
#include "base/temporary_directory.h"
#include "cli/commands.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

struct AuditOutcomeOfCommand {
  ExitCode code = ExitCode::kDone;
  std::string output;
};

AuditOutcomeOfCommand VerifyAuditLog(const std::vector<std::string>& arguments) {
  const Command command = AuditCommands().front();
  const auto line = command.Parse(arguments);
  EXPECT_TRUE(line.ok()) << ToString(line.status());
  testing::internal::CaptureStdout();
  const auto code = command.run(*line);
  std::string output = testing::internal::GetCapturedStdout();
  return {code.ok() ? *code : ExitCodeOf(code.status()), std::move(output)};
}

TEST(AuditCommands, VerifyAcceptsAWholeLogAndFindsARemovedLine) {
  const TemporaryDirectory directory;
  const std::string path = directory.Child("audit.log");
  AuditHead head;
  std::vector<std::string> lines;
  for (const char* target : {"a", "b", "c"}) lines.push_back(AuditLine({.target = target}, &head));
  std::ofstream(path) << lines[0] << lines[1] << lines[2];
  const auto whole = VerifyAuditLog({path});
  EXPECT_EQ(whole.code, ExitCode::kDone);
  EXPECT_THAT(whole.output, HasSubstr("3 records, intact"));
  EXPECT_THAT(whole.output, HasSubstr(head.hash));

  std::ofstream(path) << lines[0] << lines[2];
  const auto removed = VerifyAuditLog({path, "-o", "json"});
  EXPECT_EQ(removed.code, ExitCode::kFailed);
  const auto json = nlohmann::json::parse(removed.output);
  EXPECT_EQ(json.at("ok"), false);
  EXPECT_EQ(json.at("records"), 1);
  EXPECT_THAT(json.at("error").get<std::string>(), HasSubstr("line 2: "));
}

TEST(AuditCommands, VerifyStatesThatALogIsEmpty) {
  const TemporaryDirectory directory;
  const std::string path = directory.Child("audit.log");
  std::ofstream(path) << "";
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{path}, {path, "--alone"}}) {
    const auto empty = VerifyAuditLog(arguments);
    EXPECT_EQ(empty.code, ExitCode::kDone);
    EXPECT_EQ(empty.output, path + " is empty: it has no record, so it proves nothing\n");
  }
  const auto json = [&] {
    return nlohmann::json::parse(VerifyAuditLog({path, "-o", "json"}).output);
  };
  EXPECT_EQ(json().at("records"), 0);
  EXPECT_EQ(json().at("empty"), true);
  AuditHead head;
  std::ofstream(path) << AuditLine({.target = "a"}, &head);
  EXPECT_EQ(json().at("empty"), false);
  // Behind a full file it is absent, then empty.
  const std::string missing = path + " has no record, so later ones may have been removed\n";
  std::filesystem::rename(path, path + ".1");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(json().at("records"), 1);
    EXPECT_EQ(json().at("empty"), true);
    EXPECT_EQ(VerifyAuditLog({path}).output,
              "1 record, intact; the hash of the last one is " + head.hash + "\n" + missing);
    std::ofstream(path) << "";
  }
}

TEST(AuditCommands, VerifyChecksAllFilesOfALogOrOneAlone) {
  const TemporaryDirectory directory;
  const std::string path = directory.Child("audit.log");
  AuditHead head;
  std::ofstream(path + ".1") << AuditLine({.target = "a"}, &head);
  const std::string first = head.hash;
  std::ofstream(path) << AuditLine({.target = "b"}, &head);
  EXPECT_THAT(VerifyAuditLog({path}).output, HasSubstr("2 records, intact; "));
  const auto alone = VerifyAuditLog({path, "--alone", "-o", "json"});
  EXPECT_EQ(alone.code, ExitCode::kDone);
  const auto json = nlohmann::json::parse(alone.output);
  EXPECT_EQ(json.at("records"), 1);
  EXPECT_EQ(json.at("first"), 2);
  EXPECT_EQ(json.at("previous"), first);
  EXPECT_EQ(json.at("hash"), head.hash);
  std::filesystem::remove(path + ".1");
  EXPECT_EQ(VerifyAuditLog({path}).code, ExitCode::kFailed);
  EXPECT_EQ(VerifyAuditLog({path, "--alone"}).code, ExitCode::kDone);
}

TEST(AuditCommands, WhatIsAbsentOrNoFileIsBadInput) {
  EXPECT_EQ(VerifyAuditLog({"/nowhere/audit.log"}).code, ExitCode::kUsage);
  const TemporaryDirectory directory;
  const std::string fifo = directory.Child("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {directory.path(), fifo}) {
    EXPECT_EQ(VerifyAuditLog({path}).code, ExitCode::kUsage) << path;
    EXPECT_EQ(VerifyAuditLog({path, "--alone"}).code, ExitCode::kUsage) << path;
  }
}

}  // namespace
}  // namespace troupe
