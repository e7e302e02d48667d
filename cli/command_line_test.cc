#include "cli/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/text/display_width.h"
#include "cli/commands.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr TextFlag kColourFlag{"--colour", "NAME", "its colour"};
constexpr SwitchFlag kWetFlag{"--wet", "", "do not wait"};
constexpr RepeatedFlag kAnySetFlag{"--set", "KEY=VALUE", "anything"};
constexpr NumberFlag<int64_t> kCoatsFlag{{"--coats", "N", "coats"}, {0, 9}};
constexpr NumberFlag<double> kLitresFlag{{"--litres", "LITRES", "paint"}, {.least = kAboveZero}};
constexpr TextFlag kToFlag{"--to", "PATH", "where", true};

Command TestCommand() {
  return {.name = "paint",
          .positionals = "WALL",
          .least_positionals = 1,
          .most_positionals = 2,
          .flags = {&kColourFlag, &kWetFlag, &kAnySetFlag, &kCoatsFlag, &kLitresFlag}};
}

TEST(CommandLineTest, ReadsFlagsBeforeBetweenAndAfterArguments) {
  const auto line = TestCommand().Parse(
      {"--colour", "red", "north", "--wet", "--set=a=1", "south", "--set", "b=2", "-o", "json"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->positional(), (std::vector<std::string>{"north", "south"}));
  EXPECT_EQ(line->Get(kColourFlag), "red");
  EXPECT_TRUE(line->Get(kWetFlag));
  EXPECT_EQ(line->Get(kAnySetFlag), (std::vector<std::string>{"a=1", "b=2"}));
  EXPECT_TRUE(line->wants_json());
  EXPECT_EQ(TestCommand().Parse({"--", "--wet"})->positional()[0], "--wet");
}

TEST(CommandLineTest, AFlagThatIsNotGivenIsEmpty) {
  const auto line = TestCommand().Parse({"north"});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->Get(kColourFlag), std::nullopt);
  EXPECT_FALSE(line->Get(kWetFlag));
  EXPECT_TRUE(line->Get(kAnySetFlag).empty());
  EXPECT_EQ(line->Get(kCoatsFlag), std::nullopt);
  EXPECT_EQ(line->Get(kCoordinatorFlag), std::nullopt);
  EXPECT_FALSE(line->wants_json());
}

TEST(CommandLineDeathTest, AFlagThatTheCommandDoesNotListIsNotRead) {
  const auto line = TestCommand().Parse({"north"});
  EXPECT_DEATH(line->Get(kToFlag), "the command does not list --to");
  Command command = TestCommand();
  command.cluster = ClusterUse::kNone;
  const auto ignored = command.Parse({"north", "--data-dir", "x"});
  ASSERT_TRUE(ignored.ok()) << ignored.status();
  EXPECT_DEATH(ignored->Get(kLocalClusterFlag), "the command does not list --data-dir");
}

TEST(CommandLineTest, RefusesWhatItDoesNotKnow) {
  const auto error = [](const std::vector<std::string>& arguments) {
    const auto line = TestCommand().Parse(arguments);
    EXPECT_EQ(line.status().code(), StatusCode::kInvalidArgument);
    return std::string(Message(line.status()));
  };
  EXPECT_EQ(error({"a", "--color", "red"}), "--color: unknown flag; did you mean --colour?");
  EXPECT_EQ(error({"a", "--brush"}), "--brush: unknown flag (see troupe paint --help)");
  EXPECT_THAT(error({"a", "--colour"}), HasSubstr("--colour: needs a value, NAME"));
  EXPECT_THAT(error({"a", "--colour=x", "--colour=y"}), HasSubstr("given twice, x and y"));
  EXPECT_THAT(error({"a", "--wet=1"}), HasSubstr("--wet: takes no value"));
  EXPECT_THAT(error({}), HasSubstr("usage: troupe paint"));
  EXPECT_THAT(error({"a", "b", "c"}), HasSubstr("usage: troupe paint"));
  EXPECT_THAT(error({"a", "-o", "xml"}), HasSubstr("-o xml: not json or text"));
}

TEST(CommandLineTest, AnEmptyPathOrArgumentIsRefusedByItsName) {
  Command command = TestCommand();
  command.flags = {&kToFlag, &kColourFlag};
  command.positionals = "WALL PATH|JOB[@STEP]…";
  command.most_positionals = 3;
  const auto error = [&command](const std::vector<std::string>& arguments) {
    return std::string(Message(command.Parse(arguments).status()));
  };
  EXPECT_EQ(error({"--to", "", "north"}), "--to is empty");
  EXPECT_EQ(error({"--to", "x", "--colour", "", "north"}), "")
      << "an empty name may have a meaning";
  EXPECT_EQ(error({"--to", "x", ""}), "argument 1, WALL, is empty");
  EXPECT_EQ(error({"--to", "x", "north", "a", ""}), "argument 3, PATH|JOB[@STEP]…, is empty");
  EXPECT_EQ(error({"--to=~/x", "north"}),
            "--to is ~/x: write the absolute path; ~ is expanded by a shell only at the start of a "
            "word");
  command.positionals = "[PREFIX]";
  EXPECT_EQ(error({"--to", "x", ""}), "");
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
  command.flags = {&kColourFlag, &kToFlag, &kWetFlag, &kAnySetFlag};
  command.cluster = ClusterUse::kNone;
  const std::string help = command.Parse({"--help"})->help().value();
  EXPECT_THAT(help, HasSubstr("usage: troupe paint --to PATH [--colour NAME] [--wet] "
                              "[--set KEY=VALUE]… WALL\n"));
  EXPECT_THAT(help, Not(HasSubstr("--coordinator")));
  EXPECT_THAT(help, Not(HasSubstr("--data-dir")));
  EXPECT_THAT(std::string(Message(command.Parse({"a"}).status())),
              HasSubstr("--to PATH is required"));
}

TEST(CommandLineTest, ACommandThatNeedsNoClusterAcceptsTheFlagsOfOne) {
  Command command = TestCommand();
  command.cluster = ClusterUse::kNone;
  for (const char* flag : {"--coordinator", "--data-dir", "--tls-dir", "--token-file"}) {
    const auto line = command.Parse({"north", flag, "x", "south"});
    ASSERT_TRUE(line.ok()) << line.status();
    EXPECT_EQ(line->positional(), (std::vector<std::string>{"north", "south"})) << flag;
  }
  // One of its own is not ignored.
  static constexpr TextFlag kOwnFlag{"--coordinator", "NAME", "who paints", true};
  command.flags.push_back(&kOwnFlag);
  EXPECT_EQ(command.Parse({"north", "--coordinator", "ann"})->Get(kOwnFlag), "ann");
  EXPECT_THAT(std::string(Message(command.Parse({"north", "--data-dir", "x"}).status())),
              HasSubstr("--coordinator NAME is required"));
  command.cluster = ClusterUse::kFolder;
  EXPECT_THAT(std::string(Message(command.Parse({"north", "--tls-dir", "x"}).status())),
              HasSubstr("--tls-dir: unknown flag"));
}

TEST(CommandLineTest, ShownFlagsAreThoseOfTheHelpTextWithTheirWords) {
  static constexpr TextFlag kRoleFlag{"--role", "ROLE", "who it is", false,
                                      "painter, plumber tiler"};
  Command command = TestCommand();
  command.flags = {&kRoleFlag, &kAnySetFlag};
  const auto names = [&] {
    std::vector<std::string> found;
    for (const Flag& flag : command.ShownFlags()) found.push_back(flag.name);
    return found;
  };
  EXPECT_THAT(names(), ElementsAre("-h,--help", "--role", "--set", "--coordinator", "--data-dir",
                                   "--tls-dir", "--token-file", "-o"));
  command.cluster = ClusterUse::kNone;
  EXPECT_THAT(names(), ElementsAre("-h,--help", "--role", "--set", "-o"));
  EXPECT_THAT(command.ShownFlags()[1].words, ElementsAre("painter", "plumber", "tiler"));
  EXPECT_TRUE(command.ShownFlags()[2].repeated);
  EXPECT_THAT(command.ShownFlags()[3].words, ElementsAre("json", "text"));
}

TEST(CommandLineTest, TheManualPageIsThatOfTheCommand) {
  const std::string page = TestCommand().Manual();
  EXPECT_THAT(page, HasSubstr(".TH \"TROUPE\\-PAINT\" 1"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-colour\\fR \\fINAME\\fR\nits colour\n"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-\\-coordinator\\fR"));
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

TEST(CommandLineTest, HelpTextsHaveLinesOfAtMost80Columns) {
  std::string texts = CommandTable(AllCommands());
  for (const Command& command : AllCommands()) texts += command.Parse({"--help"})->help().value();
  std::istringstream lines(texts);
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(DisplayColumns(line), kHelpColumns) << line;
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
  const std::vector<Command> commands = AllCommands();
  EXPECT_GT(commands.size(), 40u);
  std::set<std::string> names;
  for (const Command& command : commands) {
    EXPECT_FALSE(command.summary.empty()) << command.name;
    EXPECT_NE(command.run, nullptr) << command.name;
    EXPECT_TRUE(names.insert(command.name).second) << command.name;
  }
}

}  // namespace
}  // namespace troupe
