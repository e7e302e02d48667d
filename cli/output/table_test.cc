#include "cli/output/table.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

Table MakeTable() {
  Table table({{"NAME"}, {"STEP", Table::Align::kRight}, {"STATE"}, {"REASON"}});
  table.AddRow({{"jobs/long-name"}, {"7/40"}, {"RUNNING", Colour::kGreen}, {}});
  table.AddRow({{"jobs/é"}, {"120/200"}, {"FAILED", Colour::kRed}, {}});
  return table;
}

TEST(TableTest, ColumnsAreAsWideAsTheirWidestCellAndEmptyOnesAreLeftOut) {
  EXPECT_EQ(MakeTable().Text({}),
            "NAME               STEP  STATE\n"
            "jobs/long-name     7/40  RUNNING\n"
            "jobs/é          120/200  FAILED\n");
}

TEST(TableTest, ColoursDoNotMoveColumns) {
  EXPECT_EQ(MakeTable().Text({.colours = true}),
            "NAME               STEP  STATE\n"
            "jobs/long-name     7/40  \033[32mRUNNING\033[0m\n"
            "jobs/é          120/200  \033[31mFAILED\033[0m\n");
}

TEST(TableTest, ALineBelowARowIsIndentedAndWidensNothing) {
  Table table({{"WORKER"}, {"STATE"}});
  table.AddRow({{"worker-0"}, {"READY"}});
  table.AddLine("rank 0 of jobs/a on cores 0-15");
  table.AddRow({{"w"}, {"READY"}});
  EXPECT_EQ(table.Text({}),
            "WORKER    STATE\n"
            "worker-0  READY\n"
            "  rank 0 of jobs/a on cores 0-15\n"
            "w         READY\n");
}

TEST(TableTest, ATextOfOthersStaysInItsCell) {
  Table table({{"REASON"}});
  table.AddRow({{"a\nb\x1b[2J"}});
  table.AddLine("c\nd");
  EXPECT_EQ(table.Text({.colours = true}), "REASON\na\\nb\\u001b[2J\n  c\\nd\n");
}

// A table whose columns become narrower in each way.
Table NarrowTable() {
  using Narrow = Table::Narrow;
  Table table({{"NAME", Table::Align::kLeft, Narrow::kShortened, 6},
               {"STATE"},
               {.title = "AGE", .narrow = Narrow::kLeftOut, .importance = 2},
               {.title = "PLACE", .narrow = Narrow::kBelow, .importance = 1},
               {.title = "CORES", .narrow = Narrow::kBelow, .importance = 3}});
  table.AddRow({{"a-long-name-1"}, {"RUNNING"}, {"3 s"}, {"pipe 0"}, {"0-3"}});
  table.AddRow({{"b"}, {"LOST"}, {"12 min"}, {}, {}});
  return table;
}

TEST(TableTest, ANarrowTableShortensNamesAndLosesTheLeastImportantColumns) {
  EXPECT_EQ(NarrowTable().Text({.columns = 48}), NarrowTable().Text({}));
  EXPECT_EQ(NarrowTable().Text({.columns = 42}),
            "NAME        STATE    AGE     PLACE   CORES\n"
            "a-lon…me-1  RUNNING  3 s     pipe 0  0-3\n"
            "b           LOST     12 min\n");
  EXPECT_EQ(NarrowTable().Text({.columns = 30}),
            "NAME    STATE    AGE     CORES\n"
            "a-l…-1  RUNNING  3 s     0-3\n"
            "  place: pipe 0\n"
            "b       LOST     12 min\n");
  EXPECT_EQ(NarrowTable().Text({.columns = 25}),
            "NAME       STATE    CORES\n"
            "a-lo…me-1  RUNNING  0-3\n"
            "  place: pipe 0\n"
            "b          LOST\n");
  EXPECT_EQ(NarrowTable().Text({.columns = 20}),
            "NAME         STATE\n"
            "a-lon…ame-1  RUNNING\n"
            "  place: pipe 0;\n"
            "    cores: 0-3\n"
            "b            LOST\n");
  EXPECT_TRUE(NarrowTable().Text({.columns = 5}).starts_with("NAME    STATE\na-l…-1  RUNNING\n"))
      << "nothing else can go";
}

TEST(TableTest, LinesBelowRowsAreBroken) {
  Table table({{"WORKER"}});
  table.AddRow({{"w"}});
  table.AddLine("doubted by worker-1: /a/path/of/one");
  EXPECT_EQ(table.Text({.columns = 22}), "WORKER\nw\n  doubted by worker-1:\n    /a/path/of/one\n");
}

TEST(TableTest, WideCharactersKeepColumnsInPlace) {
  Table table({{"NAME"}, {"STATE"}});
  table.AddRow({{"模型"}, {"READY"}});
  table.AddRow({{"e\u0301cole"}, {"LOST"}});
  EXPECT_EQ(table.Text({}), "NAME   STATE\n模型   READY\ne\u0301cole  LOST\n");
}

}  // namespace
}  // namespace troupe
