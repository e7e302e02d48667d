#include "cli/help/unknown_flag.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/commands.h"

namespace troupe {
namespace {

const std::vector<std::string> kNames = {"-h,--help", "--rank", "-f", "--tail", "--workers"};

TEST(UnknownFlagTest, AFlagOfOtherToolsHasItsNameHere) {
  EXPECT_EQ(UnknownFlagHint("logs", "--follow", kNames), "; it is called -f here");
  EXPECT_EQ(UnknownFlagHint("logs", "-n", kNames), "; it is called --tail here");
  EXPECT_EQ(UnknownFlagHint("submit", "--follow", kNames), "; it is called --wait here");
  EXPECT_EQ(UnknownFlagHint("workers", "--json", kNames), "; it is written -o json");
}

TEST(UnknownFlagTest, AMisspeltFlagGetsTheNearestOne) {
  EXPECT_EQ(UnknownFlagHint("logs", "--tali", kNames), "; did you mean --tail?");
  EXPECT_EQ(UnknownFlagHint("logs", "--worker", kNames), "; did you mean --workers?");
  EXPECT_EQ(UnknownFlagHint("logs", "--halp", kNames), "; did you mean --help?");
  EXPECT_EQ(UnknownFlagHint("logs", "--nothing-like-it", kNames), "");
  EXPECT_EQ(UnknownFlagHint("logs", "-x", kNames), "") << "a letter is near to every other one";
}

// A row for a flag that its command has would never be read, and a hint at one that it does not
// have would be wrong.
TEST(UnknownFlagTest, RowsAreOfCommandsThatLackTheFlagAndHaveTheOneOfTheHint) {
  const std::vector<Command> commands = AllCommands();
  for (const ForeignFlag& row : ForeignFlags()) {
    if (row.command.empty()) continue;
    const auto command = std::ranges::find(commands, row.command, &Command::name);
    ASSERT_NE(command, commands.end()) << row.command;
    const auto has = [&command](std::string_view name) {
      return std::ranges::any_of(command->ShownFlags(),
                                 [&](const Flag& flag) { return flag.name == name; });
    };
    EXPECT_FALSE(has(row.name)) << row.command << " " << row.name;
    constexpr std::string_view kCalled = "it is called ";
    if (!row.hint.starts_with(kCalled)) continue;
    const std::string_view name = row.hint.substr(kCalled.size());
    EXPECT_TRUE(has(name.substr(0, name.find(' ')))) << row.command << ": " << row.hint;
  }
}

}  // namespace
}  // namespace troupe
