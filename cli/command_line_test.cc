#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "cli/commands.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Command TestCommand() {
  return {.name = "paint",
          .positionals = "WALL",
          .least_positionals = 1,
          .most_positionals = 2,
          .flags = {{"--colour", "NAME", "its colour"},
                    {"--wet", "", "do not wait"},
                    {"--set", "KEY=VALUE", "anything", true}}};
}

TEST(CommandLineTest, ReadsFlagsBeforeBetweenAndAfterArguments) {
  const auto line = TestCommand().Parse(
      {"--colour", "red", "north", "--wet", "--set=a=1", "south", "--set", "b=2", "-o", "json"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->positional(), (std::vector<std::string>{"north", "south"}));
  EXPECT_EQ(line->Get("--colour"), "red");
  EXPECT_TRUE(line->Has("--wet"));
  EXPECT_EQ(line->GetAll("--set"), (std::vector<std::string>{"a=1", "b=2"}));
  EXPECT_TRUE(line->wants_json());
  EXPECT_EQ(TestCommand().Parse({"--", "--wet"})->positional()[0], "--wet");
}

TEST(CommandLineTest, RefusesWhatItDoesNotKnow) {
  const auto error = [](const std::vector<std::string>& arguments) {
    const auto line = TestCommand().Parse(arguments);
    EXPECT_EQ(line.status().code(), StatusCode::kInvalidArgument);
    return std::string(Message(line.status()));
  };
  EXPECT_THAT(error({"a", "--color", "red"}), HasSubstr("--color: unknown flag"));
  EXPECT_THAT(error({"a", "--colour"}), HasSubstr("--colour: needs a value, NAME"));
  EXPECT_THAT(error({"a", "--colour=x", "--colour=y"}), HasSubstr("given twice, x and y"));
  EXPECT_THAT(error({"a", "--wet=1"}), HasSubstr("--wet: takes no value"));
  EXPECT_THAT(error({}), HasSubstr("usage: troupe paint"));
  EXPECT_THAT(error({"a", "b", "c"}), HasSubstr("usage: troupe paint"));
  EXPECT_THAT(error({"a", "-o", "xml"}), HasSubstr("-o xml: not json or text"));
}

TEST(CommandLineTest, NumbersAreCheckedAgainstTheirRange) {
  const auto line = TestCommand().Parse({"a", "--colour", "12x"});
  EXPECT_THAT(std::string(Message(line->Integer("--colour", 0, 0, 9).status())),
              HasSubstr("--colour 12x: not a whole number from 0 to 9"));
  EXPECT_EQ(*line->Integer("--missing", 5, 0, 9), 5);
  const NumberRange<double> positive{.least = kAboveZero};
  EXPECT_THAT(
      std::string(Message(
          TestCommand().Parse({"a", "--colour=nan"})->Number("--colour", 1, positive).status())),
      HasSubstr("--colour nan: not a number above 0"));
  EXPECT_EQ(*TestCommand().Parse({"a", "--colour=0.5"})->Number("--colour", 1, positive), 0.5);
}

TEST(CommandLineTest, HelpNamesEveryFlag) {
  const std::string help = TestCommand().Parse({"--help"})->help().value();
  for (const char* part : {"usage: troupe paint", "--colour NAME", "--wet", "--set KEY=VALUE",
                           "--coordinator HOST:PORT", "-o FORMAT", "(default: text)"}) {
    EXPECT_THAT(help, HasSubstr(part));
  }
}

TEST(CommandLineTest, UsageShowsWhatIsRequiredAndHelpHidesFlagsWithoutUse) {
  Command command = TestCommand();
  command.flags.push_back({.name = "--to", .value = "PATH", .help = "where", .required = true});
  command.cluster = ClusterUse::kNone;
  const std::string help = command.Parse({"--help"})->help().value();
  EXPECT_THAT(help, HasSubstr("usage: troupe paint --to PATH [--colour NAME] [--wet] "
                              "[--set KEY=VALUE]… WALL\n"));
  EXPECT_THAT(help, Not(HasSubstr("--coordinator")));
  EXPECT_THAT(help, Not(HasSubstr("--data-dir")));
  command.cluster = ClusterUse::kFolder;
  EXPECT_THAT(command.Parse({"--help"})->help().value(),
              HasSubstr("usage: troupe paint --to PATH --data-dir DIR ["));
  EXPECT_THAT(std::string(Message(command.Parse({"a", "--to", "b"}).status())),
              HasSubstr("--data-dir DIR is required"));
}

TEST(ExitCodeTest, FollowsTheContract) {
  EXPECT_EQ(ExitCodeOf(OkStatus()), ExitCode::kDone);
  EXPECT_EQ(ExitCodeOf(InvalidArgument("x")), ExitCode::kUsage);
  EXPECT_EQ(ExitCodeOf(AlreadyExists("x")), ExitCode::kUsage);
  // The failure is the other side's: the coordinator was reached, and it ended the call.
  EXPECT_EQ(ExitCodeOf(DeadlineExceeded("x")), ExitCode::kFailed);
  EXPECT_EQ(ExitCodeOf(Cancelled("x")), ExitCode::kFailed);
  EXPECT_EQ(ExitCodeOf(OfCoordinator(Unavailable("x"))), ExitCode::kUnreachable);
  EXPECT_EQ(ExitCodeOf(OfCoordinator(NotFound("x"))), ExitCode::kNotFound);
  EXPECT_EQ(ExitCodeOf(Annotate(OfCoordinator(NotFound("x")), "y")), ExitCode::kNotFound);
  EXPECT_EQ(ExitCodeOf(FailedPrecondition("x")), ExitCode::kFailed);
  // A file that is missing or cannot be used is bad input, whatever the command does with it.
  for (int error : {ENOENT, ENOTDIR, EISDIR, EACCES, EROFS, EEXIST}) {
    EXPECT_EQ(ExitCodeOf(ErrnoStatus(error, "open /x")), ExitCode::kUsage) << error;
  }
  EXPECT_EQ(ExitCodeOf(ErrnoStatus(ENOSPC, "write /x")), ExitCode::kFailed);
}

TEST(CommandsTest, EveryCommandHasASummaryAndRuns) {
  for (auto list : {ClusterCommands, JobCommands, PlanCommands, DataCommands, CheckpointCommands}) {
    for (const Command& command : list()) {
      EXPECT_FALSE(command.summary.empty()) << command.name;
      EXPECT_NE(command.run, nullptr) << command.name;
    }
  }
}

}  // namespace
}  // namespace troupe
