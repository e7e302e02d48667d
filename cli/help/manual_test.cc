#include "cli/help/manual.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/help/sample_commands_test.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

ManualContent SampleContent() {
  const Flag coordinator{.name = "--coordinator", .value = "HOST:PORT", .help = "whom to call"};
  ManualContent content{.version = "1.2.3",
                        .commands = SampleCommands(),
                        .flags_of_all = {{.name = "-h,--help", .help = "print this text"}},
                        .flags_of_coordinator = {coordinator},
                        .exit_codes = {{0, "done"}, {130, "interrupted"}}};
  content.commands[1].flags.push_back(coordinator);
  content.commands[2].flags.push_back(coordinator);
  content.commands[2].flags.back().help = "where to go";
  return content;
}

size_t CountOf(const std::string& part, const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ManualTest, EveryCommandHasItsArgumentsSummaryAndFlags) {
  const std::string page = TroupeManual(SampleContent());
  EXPECT_THAT(page, HasSubstr(".TH \"TROUPE\" 1 \"\" \"troupe 1.2.3\""));
  EXPECT_THAT(page, HasSubstr(".SS \"up\"\n.PP\nStarts a local cluster; returns when it is ready.\n"
                              ".TP\n\\fB\\-\\-workers\\fR \\fIN\\fR\n"));
  EXPECT_THAT(page, HasSubstr(".SS \"data export PATH|JOB[@STEP]\"\n.PP\nWrites the weights.\n"
                              ".TP\n\\fB\\-\\-to\\fR \\fIHF_DIR\\fR\nout; required\n"));
  EXPECT_THAT(page, HasSubstr(".TP\n\\fB130\\fR\ninterrupted\n"));
  EXPECT_THAT(page, HasSubstr("\\fBXDG_STATE_HOME\\fR\n"));
}

TEST(ManualTest, AFlagOfManyCommandsIsDescribedOnce) {
  const std::string page = TroupeManual(SampleContent());
  EXPECT_EQ(CountOf("print this text", page), 1u);
  EXPECT_EQ(CountOf("whom to call", page), 1u);
  // Another flag of the same name is one of its command.
  EXPECT_THAT(page, HasSubstr("Drains a worker.\n.TP\n\\fB\\-\\-coordinator\\fR "
                              "\\fIHOST:PORT\\fR\nwhere to go\n"));
}

}  // namespace
}  // namespace troupe
