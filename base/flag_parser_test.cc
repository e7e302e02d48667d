#include "base/flag_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// The flags of a program, and what Parse sets.
struct Painter {
  std::string colour = "red", wall;
  int coats = 2;
  double litres = 0.5;
  std::optional<int> hours;
  bool wet = false;
  std::vector<std::string> tools, rooms;
  FlagParser parser{{.name = "paint",
                     .usage = "paint [FLAG …] ROOM",
                     .summary = "Paints rooms.",
                     .footer = "Exit codes: 0 done, 2 wrong usage."}};

  Painter() {
    parser.AddWord({"--colour", "NAME", "colour of the walls"}, {"red", "blue"}, &colour);
    parser.AddText({"--wall", "NAME", "the only wall to paint"}, &wall);
    parser.AddNumber({"--coats", "N", "coats of paint"}, {1, 9}, &coats);
    parser.AddNumber({"--litres", "LITRES", "paint per coat"}, {.least = kAboveZero}, &litres);
    parser.AddOptionalNumber({"--dry", "HOURS", "time between two coats"}, {.least = 0}, &hours);
    parser.AddSwitch({"--wet", "", "does not wait"}, &wet);
    parser.AddParsed({"--tool", "NAME", "a tool", true}, [this](const std::string& tool) {
      tools.push_back(tool);
      return OkStatus();
    });
    parser.AddParsed({"--secret", "NAME"}, [](const std::string&) { return OkStatus(); });
    parser.AddArguments(1, 2, &rooms);
  }
};

std::string Refusal(const std::vector<std::string>& arguments) {
  const Status status = Painter().parser.Parse(arguments);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  return std::string(Message(status));
}

TEST(FlagParserTest, SetsVariablesAndKeepsDefaults) {
  Painter painter;
  ASSERT_TRUE(painter.parser
                  .Parse({"--colour", "blue", "north", "--coats=3", "--wet", "--tool=a=b", "south",
                          "--tool", "--brush"})
                  .ok());
  EXPECT_EQ(painter.colour, "blue");
  EXPECT_EQ(painter.coats, 3);
  EXPECT_EQ(painter.litres, 0.5);
  EXPECT_FALSE(painter.hours.has_value());
  EXPECT_TRUE(painter.wet);
  EXPECT_THAT(painter.tools, ElementsAre("a=b", "--brush"));
  EXPECT_THAT(painter.rooms, ElementsAre("north", "south"));
}

TEST(FlagParserTest, TakesEmptyValuesAndDashesAsTheyAre) {
  Painter painter;
  painter.wall = "east";
  ASSERT_TRUE(painter.parser.Parse({"--wall=", "--tool", "", "-", "--", "--wet"}).ok());
  EXPECT_EQ(painter.wall, "");
  EXPECT_THAT(painter.tools, ElementsAre(""));
  EXPECT_THAT(painter.rooms, ElementsAre("-", "--wet"));
  EXPECT_FALSE(painter.wet);
}

TEST(FlagParserTest, RefusesWhatWasNotDeclared) {
  EXPECT_EQ(Refusal({"a", "--color", "red"}), "--color: unknown flag (see paint --help)");
  EXPECT_EQ(Refusal({"a", "--color=red"}), "--color: unknown flag (see paint --help)");
  EXPECT_EQ(Refusal({"a", "-x"}), "-x: unknown flag (see paint --help)");
  EXPECT_EQ(Refusal({"a", "--colour"}), "--colour: needs a value, NAME");
  EXPECT_EQ(Refusal({"a", "--wall=x", "--wall=y"}), "--wall: given twice, x and y");
  EXPECT_EQ(Refusal({"a", "--wet=1"}), "--wet: takes no value");
  EXPECT_EQ(Refusal({}), "usage: paint [FLAG …] ROOM");
  EXPECT_EQ(Refusal({"a", "b", "c"}), "usage: paint [FLAG …] ROOM");
  FlagParser none({.name = "none"});
  EXPECT_EQ(Message(none.Parse({"a"})), "a: unexpected argument (see none --help)");
}

TEST(FlagParserTest, ErrorsOfValuesNameFlagValueAndRange) {
  EXPECT_EQ(Refusal({"a", "--colour=pink"}), "--colour pink: not red or blue");
  for (const char* text : {"", "0", "10", "2x", " 2", "+2", "0x2", "2.0", "99999999999"}) {
    EXPECT_EQ(Refusal({"a", "--coats", text}),
              fmt::format("--coats {}: not a whole number from 1 to 9", text));
  }
  for (const char* text : {"0", "-1", "nan", "inf", "1 l"}) {
    EXPECT_EQ(Refusal({"a", "--litres", text}),
              fmt::format("--litres {}: not a number above 0", text));
  }
  EXPECT_EQ(Refusal({"a", "--dry=-1"}), "--dry -1: not a whole number of at least 0");
}

TEST(FlagParserTest, HelpHasEveryFlagWithItsDefaultInLinesOf80Columns) {
  Painter painter;
  ASSERT_TRUE(painter.parser.Parse({"--help", "--unknown"}).ok() || painter.parser.wants_help());
  EXPECT_TRUE(painter.parser.wants_help());
  const std::string help = painter.parser.Help();
  EXPECT_THAT(help, AllOf(HasSubstr("Paints rooms."), HasSubstr("usage: paint [FLAG …] ROOM"),
                          HasSubstr("Exit codes: 0 done, 2 wrong usage.")));
  for (const char* flag :
       {"--colour NAME", "(default: red)", "--wall NAME", "--coats N", "(default: 2)",
        "--litres LITRES", "(default: 0.5)", "--dry HOURS", "--wet", "-h,--help"}) {
    EXPECT_THAT(help, HasSubstr(flag));
  }
  EXPECT_THAT(help, Not(HasSubstr("--secret")));
  EXPECT_THAT(help, AllOf(HasSubstr("\n\nExit codes"), Not(HasSubstr("\n\n\n"))));
  FlagParser parser({.name = "long"});
  bool given = false;
  std::string text;
  for (int word = 0; word < 60; ++word) text += " word";
  parser.AddSwitch({"--flag", "", text}, &given);
  const std::string lines = parser.Help();
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    EXPECT_LE(end - at, 80u);
    at = end + 1;
  }
}

TEST(FlagParserTest, AUsageIsBrokenBetweenFlags) {
  FlagParser parser({.name = "paint",
                     .usage = "paint --wall NAME --colour NAME [--coats N] [--litres LITRES] "
                              "[--tool NAME]… ROOM\n       paint --list"});
  EXPECT_THAT(parser.Help(),
              HasSubstr("\nusage: paint --wall NAME --colour NAME [--coats N] [--litres LITRES]\n"
                        "       [--tool NAME]… ROOM\n"
                        "       paint --list\n"));
  FlagParser required({.name = "paint",
                       .usage = "paint [--a-flag-that-is-long NAME] [--another-one-of-them NAME] "
                                "--wall NAME --room NAME"});
  EXPECT_THAT(required.Help(), HasSubstr("--another-one-of-them NAME]\n       --wall NAME --room"))
      << "no line ends between a flag and its value";
}

TEST(FlagParserTest, APathBeginsWithNoTilde) {
  const auto parsed = [](const std::vector<std::string>& arguments) {
    std::string folder, reason;
    std::vector<std::string> others;
    FlagParser parser({.name = "paint"});
    parser.AddText({"--folder", "DIR", "where"}, &folder);
    parser.AddText({"--reason", "TEXT", "why"}, &reason);
    parser.AddArguments(0, 2, &others);
    return std::string(Message(parser.Parse(arguments)));
  };
  const std::string why =
      ": write the absolute path; ~ is expanded by a shell only at the start of a word";
  EXPECT_EQ(parsed({"--folder=~/x"}), "--folder is ~/x" + why);
  EXPECT_EQ(parsed({"--folder", "~"}), "--folder is ~" + why);
  EXPECT_EQ(parsed({"a", "~/b"}), "argument 2 is ~/b" + why);
  EXPECT_EQ(parsed({"--reason=~/x", "--folder=/~/x", "~a"}), "");
  for (const char* name : {"DIR", "HF_DIR", "FILE", "PATH", "PREFIX", "JOB.yaml"})
    EXPECT_TRUE(NamesPath(name)) << name;
  for (const char* name : {"N", "NAME", "TEXT", "KEY=VALUE", "HOST:PORT", ""})
    EXPECT_FALSE(NamesPath(name)) << name;
}

TEST(FlagParserTest, AnUnknownFlagMayHaveAHint) {
  FlagParser parser({.name = "paint", .unknown_flag_hint = [](const std::string& flag) {
                       return flag == "--color" ? "; it is called --colour here" : "";
                     }});
  EXPECT_EQ(Message(parser.Parse({"--color=red"})),
            "--color: unknown flag; it is called --colour here");
  FlagParser other({.name = "paint", .unknown_flag_hint = [](const std::string&) { return ""; }});
  EXPECT_EQ(Message(other.Parse({"--x"})), "--x: unknown flag (see paint --help)");
}

TEST(FlagParserTest, TheManualPageHasWhatTheHelpTextHas) {
  const std::string page = Painter().parser.Manual();
  for (const char* part :
       {".TH \"PAINT\" 1", "paint \\- Paints rooms\n", "paint [FLAG …] ROOM\n",
        "\\fB\\-\\-colour\\fR \\fINAME\\fR\ncolour of the walls (default: red)\n",
        "\\fB\\-\\-wet\\fR\ndoes not wait\n", "\\fB\\-h,\\-\\-help\\fR\n",
        "Exit codes: 0 done, 2 wrong usage."}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  EXPECT_THAT(page, Not(HasSubstr("secret")));
}

TEST(FlagParserTest, ListsTheFlagsInOrderWithTheWordsOfTheirValues) {
  const Painter painter;
  const std::vector<Flag>& flags = painter.parser.flags();
  ASSERT_EQ(flags.size(), 9u);
  EXPECT_EQ(flags[0].name, "-h,--help");
  EXPECT_EQ(flags[1].name, "--colour");
  EXPECT_EQ(flags[1].help, "colour of the walls (default: red)");
  EXPECT_THAT(flags[1].words, ElementsAre("red", "blue"));
  EXPECT_TRUE(flags[7].repeated);
  EXPECT_EQ(flags[8].help, "");
}

TEST(FlagParserTest, AnAddressHasAHostAndAPort) {
  for (const char* good : {"127.0.0.1:7000", "host.example:65535", "[::1]:1", ":80"}) {
    EXPECT_TRUE(CheckHostPort("--listen", good, 1).ok()) << good;
  }
  for (const char* bad :
       {"", "nonsense", "host", "host:", "host:x", "host:80x", "host:-1", "host:65536", "host:0"}) {
    const Status refused = CheckHostPort("--listen", bad, 1);
    EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(Message(refused),
              fmt::format("--listen {} is not HOST:PORT, with a port from 1 to 65535", bad));
  }
  EXPECT_TRUE(CheckHostPort("--listen", "127.0.0.1:0", 0).ok());
}

TEST(FlagParserTest, ARequiredFlagIsNamedWhenItIsAbsent) {
  const auto parsed = [](const std::vector<std::string>& arguments) {
    std::string wall;
    FlagParser parser({.name = "paint"});
    parser.AddText({.name = "--wall", .value = "NAME", .help = "the wall", .required = true},
                   &wall);
    const Status status = parser.Parse(arguments);
    return parser.wants_help() ? parser.Help() : std::string(Message(status));
  };
  EXPECT_EQ(parsed({"--wall", "east"}), "");
  EXPECT_EQ(parsed({}), "--wall NAME is required");
  EXPECT_THAT(parsed({"--help"}), HasSubstr("the wall; required"));
}

TEST(FlagParserTest, MainEndsWith0AfterHelpAndWith2AfterAnError) {
  const auto main = [](std::vector<std::string> arguments, const Status& checked) {
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    return Painter().parser.ParseMain(static_cast<int>(argv.size()), argv.data(),
                                      [&] { return checked; });
  };
  EXPECT_EQ(main({"paint", "a"}, OkStatus()), std::nullopt);
  EXPECT_EQ(main({"paint", "a", "--help"}, InvalidArgument("not called")), 0);
  EXPECT_EQ(main({"paint", "a", "--version"}, InvalidArgument("not called")), 0);
  EXPECT_EQ(main({"paint", "--manual"}, InvalidArgument("not called")), 0);
  EXPECT_EQ(main({"paint", "--nothing"}, OkStatus()), 2);
  EXPECT_EQ(main({"paint", "a"}, InvalidArgument("--wall is required")), 2);
  testing::internal::CaptureStderr();
  EXPECT_EQ(main({"paint", "a"}, InvalidArgument("the file has \"x\npaint: done\"")), 2);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "paint: the file has \"x\\npaint: done\"\n");
}

// A path that is not UTF-8 once reached the supervisor of a cluster, and killed it.
TEST(FlagParserTest, AnArgumentThatCannotBeInAMessageIsRefused) {
  EXPECT_EQ(Refusal({"a", "--wall", "/tmp/caf\xe9"}),
            "--wall: \"/tmp/caf\\xe9\" is not UTF-8: its byte 9 is \\xe9");
  EXPECT_EQ(Refusal({"a", "--wall=caf\xe9"}),
            "--wall: \"caf\\xe9\" is not UTF-8: its byte 4 is \\xe9");
  EXPECT_EQ(Refusal({"a", "--w\xe9=east"}),
            "argument 2: \"--w\\xe9=east\" is not UTF-8: its byte 4 is \\xe9");
  EXPECT_EQ(Refusal({"a", "--wall=east", "\xe9"}),
            "argument 3: \"\\xe9\" is not UTF-8: its byte 1 is \\xe9");
  EXPECT_EQ(Refusal({"--", "\xe9=a"}), "argument 2: \"\\xe9=a\" is not UTF-8: its byte 1 is \\xe9");
  EXPECT_EQ(Refusal({"\xe9"}), "argument 1: \"\\xe9\" is not UTF-8: its byte 1 is \\xe9");
  EXPECT_EQ(Refusal({"a", "--wall", "x\n\x1b"}),
            "--wall: \"x\\n\\u001b\" has the control character U+000A at its byte 2");
  Painter painter;
  EXPECT_TRUE(painter.parser.Parse({"a", "--wall", "größe"}).ok());
}

TEST(FlagParserTest, AVariableOfTheEnvironmentIsATextToo) {
  const char* const name = "TROUPE_TEST_OF_THE_ENVIRONMENT";
  EXPECT_EQ(*TextFromEnvironment(name), std::nullopt);
  setenv(name, "", 1);
  EXPECT_EQ(*TextFromEnvironment(name), std::nullopt);
  setenv(name, "/größe", 1);
  EXPECT_EQ(*TextFromEnvironment(name), "/größe");
  setenv(name, "/caf\xe9", 1);
  EXPECT_EQ(Message(TextFromEnvironment(name).status()),
            std::string(name) + ": \"/caf\\xe9\" is not UTF-8: its byte 5 is \\xe9");
  unsetenv(name);
}

}  // namespace
}  // namespace troupe
