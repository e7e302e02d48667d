#include "cli/command_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/commands.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string NameFound(const std::vector<std::string>& arguments) {
  static const std::vector<Command>& commands = *new std::vector<Command>(AllCommands());
  const Command* const found = FindCommand(arguments, commands);
  return found == nullptr ? "none" : found->name;
}

std::string Refusal(const std::vector<std::string>& arguments) {
  EXPECT_EQ(NameFound(arguments), "none");
  return UnknownCommandText(arguments, AllCommands());
}

TEST(CommandLookupTest, TheLongestNameIsFound) {
  EXPECT_EQ(NameFound({"submit", "job.yaml"}), "submit");
  EXPECT_EQ(NameFound({"workers"}), "workers");
  EXPECT_EQ(NameFound({"workers", "-o", "json"}), "workers");
  EXPECT_EQ(NameFound({"workers", "drain", "a"}), "workers drain");
  EXPECT_EQ(NameFound({"checkpoints", "list", "a"}), "checkpoints list");
  EXPECT_EQ(NameFound({"checkpoints"}), "none");
  EXPECT_EQ(NameFound({"checkpoints", "--help"}), "none");
}

TEST(CommandLookupTest, AMisspeltCommandGetsTheNearestOneAlone) {
  EXPECT_EQ(Refusal({"submti", "job.yaml"}),
            "submti: there is no such command; did you mean `troupe submit`?\n");
  EXPECT_EQ(Refusal({"checkpoints", "exprot", "a"}),
            "checkpoints exprot: there is no such command; did you mean `troupe checkpoints "
            "export`?\n");
  EXPECT_EQ(Refusal({"workers", "drian", "a"}),
            "workers drian: there is no such command; did you mean `troupe workers drain`?\n");
  EXPECT_EQ(Refusal({"verify", "a"}),
            "verify: there is no such command; did you mean `troupe checkpoints verify` or "
            "`troupe audit verify`?\n");
}

TEST(CommandLookupTest, ACommandOfOtherToolsGetsTheOneThatDoesTheSame) {
  EXPECT_EQ(Refusal({"status", "a"}),
            "status: there is no such command; `troupe list` shows the jobs, `troupe describe JOB` "
            "one of them\n");
  EXPECT_EQ(Refusal({"version"}),
            "version: there is no such command; `troupe --version` prints the version\n");
  EXPECT_THAT(Refusal({"stop", "a"}), HasSubstr("`troupe cancel JOB`"));
}

TEST(CommandLookupTest, AnotherWordGetsThePlaceWhereCommandsAreListed) {
  EXPECT_EQ(Refusal({"no-such-command"}),
            "no-such-command: there is no such command; `troupe help` lists the commands\n");
  EXPECT_EQ(Refusal({"--data-dir", "a", "list"}),
            "--data-dir: a flag follows its command, as in troupe COMMAND --data-dir; `troupe "
            "help` lists the commands\n");
}

TEST(CommandLookupTest, AMisspeltFlagBeforeACommandGetsTheNearestOne) {
  EXPECT_EQ(Refusal({"--verison"}), "--verison: there is no such flag; did you mean --version?\n");
  EXPECT_EQ(Refusal({"--hlep", "list"}), "--hlep: there is no such flag; did you mean --help?\n");
  EXPECT_EQ(Refusal({"--json", "list"}), "--json: there is no such flag; it is written -o json\n");
  EXPECT_THAT(Refusal({"--server=a:1", "list"}),
              HasSubstr("--server=a:1: there is no such flag; --coordinator HOST:PORT names"));
  // Some command has the flag.
  EXPECT_THAT(Refusal({"--output", "page.html", "report"}),
              HasSubstr("--output: a flag follows its command"));
}

TEST(CommandLookupTest, AGroupGetsItsCommands) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"checkpoints"}, {"checkpoints", "no-such-command"}}) {
    EXPECT_THAT(Refusal(arguments),
                AllOf(HasSubstr("the commands of checkpoints are\n\n"),
                      HasSubstr("checkpoints verify "), Not(HasSubstr("submit"))));
  }
}

TEST(CommandLookupTest, NoArgumentBeginsALineOrMovesTheCursor) {
  EXPECT_THAT(Refusal({"a\nb\x1b[2J"}), HasSubstr("a\\nb\\u001b[2J: there is no such command"));
}

}  // namespace
}  // namespace troupe
