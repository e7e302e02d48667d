#include "cli/help/documented_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Files = Completion::Files;

TEST(DocumentedCommandTest, ItsNameIsAWordOrAWordInAGroup) {
  const std::vector<DocumentedCommand> commands = {
      {.name = "workers"}, {.name = "data show"}, {.name = "workers drain"}, {.name = "data list"}};
  EXPECT_EQ(GroupOf(commands[1]), "data");
  EXPECT_EQ(WordInGroup(commands[1]), "show");
  EXPECT_EQ(GroupOf(commands[0]), "workers");
  EXPECT_EQ(WordInGroup(commands[0]), "");
  EXPECT_THAT(FirstWords(commands), ElementsAre("workers", "data"));
  const auto groups = GroupsOf(commands);
  ASSERT_EQ(groups.size(), 2u);
  ASSERT_EQ(groups.at("data").size(), 2u);
  EXPECT_EQ(groups.at("data")[1].name, "data list");
  EXPECT_EQ(groups.at("workers").size(), 1u);
}

TEST(DocumentedCommandTest, AFirstWordIsDescribedByItsCommandOrTheWordsThatFollow) {
  const std::vector<DocumentedCommand> commands = {
      {.name = "workers", .summary = "Lists workers; all of them."},
      {.name = "workers drain"},
      {.name = "data show"},
      {.name = "data prepare"}};
  EXPECT_EQ(FirstWordText("workers", commands), "Lists workers");
  EXPECT_EQ(FirstWordText("data", commands), "show, prepare");
}

TEST(DocumentedCommandTest, AFlagHasOneOrSeveralSpellings) {
  EXPECT_THAT(Spellings({.name = "--set"}), ElementsAre("--set"));
  EXPECT_THAT(Spellings({.name = "-h,--help"}), ElementsAre("-h", "--help"));
}

TEST(DocumentedCommandTest, TheNameOfAValueRevealsItsCompletion) {
  EXPECT_EQ(CompletionOf("bash|zsh|fish"), (Completion{{"bash", "zsh", "fish"}, Files::kNone}));
  EXPECT_EQ(CompletionOf("N|TIME|all"), (Completion{{"all"}, Files::kNone}));
  for (const char* files :
       {"PATH", "FILE", "PATH…", "JOB.yaml", "PATH PATH", "STEP-or-PATH",
        "(PATH|HF_DIR|JOB[@STEP])", "PATH|JOB[@STEP]", "JOB STEP|PATH|JOB[@STEP]"})
    EXPECT_EQ(CompletionOf(files), (Completion{{}, Files::kAll})) << files;
  for (const char* directories : {"DIR", "HF_DIR", "[DIR]"})
    EXPECT_EQ(CompletionOf(directories), (Completion{{}, Files::kDirectories})) << directories;
  for (const char* none : {"", "N", "JOB", "HOST:PORT", "KEY=VALUE", "[PREFIX]", "COMMAND", "--"})
    EXPECT_EQ(CompletionOf(none), Completion()) << none;
  const Flag dtype{.name = "--dtype", .value = "DTYPE", .words = {"float32", "bfloat16"}};
  EXPECT_THAT(CompletionOf(dtype).words, ElementsAre("float32", "bfloat16"));
  EXPECT_THAT(CompletionOf(Flag{.name = "--wait"}).words, IsEmpty());
}

TEST(DocumentedCommandTest, ABriefTextIsTheBeginningOfALongOne) {
  EXPECT_EQ(Brief("its colour"), "its colour");
  EXPECT_EQ(Brief("Lists all jobs."), "Lists all jobs");
  EXPECT_EQ(Brief("Plans a job. Needs no cluster."), "Plans a job");
  EXPECT_EQ(Brief("folder (default: one; else none)"), "folder");
  EXPECT_EQ(Brief("follows it; Ctrl-C detaches (always)"), "follows it");
  EXPECT_EQ(Brief(""), "");
}

}  // namespace
}  // namespace troupe
