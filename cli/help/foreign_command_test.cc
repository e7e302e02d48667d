#include "cli/help/foreign_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/command_lookup.h"
#include "cli/commands.h"

namespace troupe {
namespace {

TEST(ForeignCommandTest, AWordOfOtherToolsHasAHint) {
  EXPECT_THAT(std::string(ForeignCommandHint("ps")), testing::HasSubstr("`troupe list`"));
  EXPECT_THAT(std::string(ForeignCommandHint("kill")),
              testing::HasSubstr("`troupe cancel --now JOB`"));
  EXPECT_EQ(ForeignCommandHint("version"), "`troupe --version` prints the version");
  EXPECT_EQ(ForeignCommandHint("submit"), "");
}

TEST(ForeignCommandTest, NoRowIsACommandAndEachHintNamesCommandsThatThereAre) {
  const std::vector<Command> commands = AllCommands();
  std::set<std::string_view> names;
  for (const ForeignCommand& row : ForeignCommands()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " has two rows";
    EXPECT_EQ(FindCommand({std::string(row.name)}, commands), nullptr) << row.name;
    EXPECT_EQ(CommandsWith(std::string(row.name), commands), "") << row.name;
    const std::string_view mark = "`troupe ";
    for (size_t at = row.hint.find(mark); at != row.hint.npos; at = row.hint.find(mark, at + 1)) {
      const std::string_view named = row.hint.substr(at + mark.size());
      std::istringstream text(std::string(named.substr(0, named.find('`'))));
      const std::vector<std::string> words{std::istream_iterator<std::string>(text), {}};
      if (words[0] == "--version") continue;
      EXPECT_NE(FindCommand(words, commands), nullptr) << row.hint;
    }
  }
}

}  // namespace
}  // namespace troupe
