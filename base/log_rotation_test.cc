#include "base/log_rotation.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "base/temporary_directory.h"

namespace troupe {
namespace {

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Runs `body` in a child process with its output redirected to `log`.
void InProcess(const std::string& log, void (*body)()) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    body();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

TEST(LogRotationTest, AFullLogIsMovedAsideAndNoLineIsLostOfThoseKept) {
  const TemporaryDirectory folder;
  const std::string log = folder.path() + "/log";
  InProcess(log, [] {
    LimitLog({.bytes = 1000, .files = 3});
    for (int i = 0; i < 210; ++i) LogInfo("test", "line {:04}", i);
  });
  std::string all;
  for (const char* part : {".3", ".2", ".1", ""}) {
    const std::string text = ReadAll(log + part);
    EXPECT_GT(text.size(), 0u) << part;
    EXPECT_LT(text.size(), 1100u) << part;
    all += text;
  }
  EXPECT_FALSE(std::filesystem::exists(log + ".4"));
  // The rest is a sequence of whole lines up to the last one.
  const size_t first = all.find("line ");
  int number = std::stoi(all.substr(first + 5, 4));
  EXPECT_GT(number, 0);
  for (size_t at = first; at != std::string::npos; at = all.find("line ", at + 1)) {
    EXPECT_EQ(std::stoi(all.substr(at + 5, 4)), number++);
  }
  EXPECT_EQ(number, 210);
}

TEST(LogRotationTest, WithoutALimitALogGrows) {
  const TemporaryDirectory folder;
  const std::string log = folder.path() + "/log";
  InProcess(log, [] {
    LimitLog({.bytes = 0, .files = 3});
    for (int i = 0; i < 210; ++i) LogInfo("test", "line {:04}", i);
  });
  EXPECT_GT(ReadAll(log).size(), 5000u);
  EXPECT_FALSE(std::filesystem::exists(log + ".1"));
}

TEST(LogRotationTest, WithoutFilesToKeepAFullLogGoes) {
  const TemporaryDirectory folder;
  const std::string log = folder.path() + "/log";
  InProcess(log, [] {
    LimitLog({.bytes = 1000, .files = 0});
    for (int i = 0; i < 210; ++i) LogInfo("test", "line {:04}", i);
  });
  EXPECT_LT(ReadAll(log).size(), 1100u);
  EXPECT_FALSE(std::filesystem::exists(log + ".1"));
}

}  // namespace
}  // namespace troupe
