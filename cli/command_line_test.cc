#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "cli/commands.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr TextFlag kColourFlag{"--colour", "NAME", "its colour"};
constexpr SwitchFlag kWetFlag{"--wet", "", "do not wait"};
constexpr RepeatedFlag kSetFlag{"--set", "KEY=VALUE", "anything"};
constexpr NumberFlag<int64_t> kCoatsFlag{{"--coats", "N", "coats"}, {0, 9}};
constexpr NumberFlag<double> kLitresFlag{{"--litres", "LITRES", "paint"}, {.least = kAboveZero}};
constexpr TextFlag kToFlag{"--to", "PATH", "where", true};

Command TestCommand() {
  return {.name = "paint",
          .positionals = "WALL",
          .least_positionals = 1,
          .most_positionals = 2,
          .flags = {&kColourFlag, &kWetFlag, &kSetFlag, &kCoatsFlag, &kLitresFlag}};
}

TEST(CommandLineTest, ReadsFlagsBeforeBetweenAndAfterArguments) {
  const auto line = TestCommand().Parse(
      {"--colour", "red", "north", "--wet", "--set=a=1", "south", "--set", "b=2", "-o", "json"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->positional(), (std::vector<std::string>{"north", "south"}));
  EXPECT_EQ(line->Get(kColourFlag), "red");
  EXPECT_TRUE(line->Get(kWetFlag));
  EXPECT_EQ(line->Get(kSetFlag), (std::vector<std::string>{"a=1", "b=2"}));
  EXPECT_TRUE(line->wants_json());
  EXPECT_EQ(TestCommand().Parse({"--", "--wet"})->positional()[0], "--wet");
}

TEST(CommandLineTest, AFlagThatIsNotGivenIsEmpty) {
  const auto line = TestCommand().Parse({"north"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->Get(kColourFlag), std::nullopt);
  EXPECT_FALSE(line->Get(kWetFlag));
  EXPECT_TRUE(line->Get(kSetFlag).empty());
  EXPECT_EQ(line->Get(kCoatsFlag), std::nullopt);
  EXPECT_EQ(line->Get(kCoordinatorFlag), std::nullopt);
  EXPECT_FALSE(line->wants_json());
}

TEST(CommandLineDeathTest, AFlagThatTheCommandDoesNotListIsNotRead) {
  const auto line = TestCommand().Parse({"north"});
  EXPECT_DEATH(line->Get(kToFlag), "the command does not list --to");
  EXPECT_DEATH(line->Get(kDataDirFlag), "the command does not list --data-dir");
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
  const auto line = TestCommand().Parse({"a", "--coats", "9", "--litres=0.5"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->Get(kCoatsFlag), 9);
  EXPECT_EQ(line->Get(kLitresFlag), 0.5);
  EXPECT_THAT(std::string(Message(TestCommand().Parse({"a", "--coats", "12x"}).status())),
              HasSubstr("--coats 12x: not a whole number from 0 to 9"));
  EXPECT_THAT(std::string(Message(TestCommand().Parse({"a", "--litres=nan"}).status())),
              HasSubstr("--litres nan: not a number above 0"));
}

TEST(CommandLineTest, HelpNamesEveryFlag) {
  const std::string help = TestCommand().Parse({"--help"})->help().value();
  for (const char* part :
       {"usage: troupe paint", "--colour NAME", "--wet", "--set KEY=VALUE", "--coats N",
        "--coordinator HOST:PORT", "-o FORMAT", "(default: text)"}) {
    EXPECT_THAT(help, HasSubstr(part));
  }
}

TEST(CommandLineTest, UsageShowsWhatIsRequiredAndHelpHidesFlagsWithoutUse) {
  Command command = TestCommand();
  command.flags = {&kColourFlag, &kToFlag, &kWetFlag, &kSetFlag};
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

TEST(CommandLineTest, SummariesBeginInOneColumnBehindTheLongestName) {
  const std::vector<Command> commands = {
      {.name = "up", .summary = "Starts."},
      {.name = "checkpoints rebuild-catalog", .summary = "Rebuilds."}};
  EXPECT_EQ(CommandTable(commands),
            "  up                          Starts.\n"
            "  checkpoints rebuild-catalog Rebuilds.\n");
  EXPECT_EQ(CommandTable({}), "");
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
  for (auto list : {ClusterCommands, JobCommands, MeasureCommands, PlanCommands, KeyCommands,
                    DataCommands, CheckpointCommands, CatalogCommands, InteropCommands}) {
    for (const Command& command : list()) {
      EXPECT_FALSE(command.summary.empty()) << command.name;
      EXPECT_NE(command.run, nullptr) << command.name;
    }
  }
}

}  // namespace
}  // namespace troupe
