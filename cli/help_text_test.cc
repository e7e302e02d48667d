#include "cli/help_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/text/display_width.h"
#include "cli/commands.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string HelpFor(const std::vector<std::string>& words) {
  return HelpText(words, AllCommands()).value_or("none");
}

TEST(HelpTextTest, WithoutAWordAllCommandsAreListedInLinesOf80Columns) {
  const std::string text = HelpFor({});
  EXPECT_THAT(text, AllOf(StartsWith("usage: troupe COMMAND …\n"), HasSubstr("\n  submit "),
                          HasSubstr("\n  checkpoints rebuild-catalog "),
                          HasSubstr("\nExit codes:\n  0    ")));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(DisplayColumns(line), kHelpColumns) << line;
}

TEST(HelpTextTest, ACommandHasTheHelpOfItsFlags) {
  EXPECT_THAT(HelpFor({"list"}), AllOf(HasSubstr("usage: troupe list"), HasSubstr("--state STATE"),
                                       Not(HasSubstr("submit"))));
  EXPECT_THAT(HelpFor({"checkpoints", "list"}), HasSubstr("usage: troupe checkpoints list"));
}

TEST(HelpTextTest, AGroupHasItsCommands) {
  EXPECT_THAT(HelpFor({"checkpoints"}),
              AllOf(StartsWith("usage: troupe checkpoints COMMAND …\n\n"),
                    HasSubstr("\n  checkpoints verify "), Not(HasSubstr("submit"))));
  EXPECT_THAT(HelpFor({"workers"}),
              AllOf(HasSubstr("usage: troupe workers"),
                    HasSubstr("\nOther commands of workers:\n  workers drain ")));
}

TEST(HelpTextTest, AnotherWordHasNone) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"no-such-command"}, {"list", "x"}, {"checkpoints", "x"}, {""}})
    EXPECT_EQ(HelpFor(words), "none") << words[0];
}

}  // namespace
}  // namespace troupe
