#include "base/program/program.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace troupe {
namespace {

std::string Output(auto print) {
  testing::internal::CaptureStdout();
  print();
  return testing::internal::GetCapturedStdout();
}

std::string Messages(auto print) {
  testing::internal::CaptureStderr();
  print();
  return testing::internal::GetCapturedStderr();
}

const std::string kHostile = "a\nworker-9  READY\x1b[31m\u009b\u202e\xe9";
const std::string kShown = "a\\nworker-9  READY\\u001b[31m\\u009b\\u202e\\xe9";

TEST(Program, ATextOfOthersPrintsOneLineWithoutControlCharacters) {
  EXPECT_EQ(Output([] { PrintOutput("{}: {:<3}|{}\n", kHostile, "b", 7); }), kShown + ": b  |7\n");
  EXPECT_EQ(Messages([] { PrintMessage("troupe: {}\n", kHostile); }), "troupe: " + kShown + "\n");
}

TEST(Program, OnlyLinesKeepTheirNewlines) {
  EXPECT_EQ(Output([] { PrintOutput("{}", Lines{"a\n\tb\r\x1b\n"}); }), "a\n\tb\\r\\u001b\n");
  const std::vector<std::string> list = {"a\x1b", "b"};
  EXPECT_EQ(Output([&] { PrintOutput("{}\n", fmt::join(list, " ")); }), "a\\u001b b\n");
}

TEST(Program, JsonStaysTheSameJson) {
  EXPECT_EQ(Output([] { PrintOutput("{}\n", "{\"a\":\"\u009b\x7f\u202eö\\n\"}"); }),
            "{\"a\":\"\\u009b\\u007f\\u202eö\\n\"}\n");
}

}  // namespace
}  // namespace troupe
