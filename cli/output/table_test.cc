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
  EXPECT_EQ(MakeTable().Text(false),
            "NAME               STEP  STATE\n"
            "jobs/long-name     7/40  RUNNING\n"
            "jobs/é          120/200  FAILED\n");
}

TEST(TableTest, ColoursDoNotMoveColumns) {
  EXPECT_EQ(MakeTable().Text(true),
            "NAME               STEP  STATE\n"
            "jobs/long-name     7/40  \033[32mRUNNING\033[0m\n"
            "jobs/é          120/200  \033[31mFAILED\033[0m\n");
}

TEST(TableTest, ALineBelowARowIsIndentedAndWidensNothing) {
  Table table({{"WORKER"}, {"STATE"}});
  table.AddRow({{"worker-0"}, {"READY"}});
  table.AddLine("rank 0 of jobs/a on cores 0-15");
  table.AddRow({{"w"}, {"READY"}});
  EXPECT_EQ(table.Text(false),
            "WORKER    STATE\n"
            "worker-0  READY\n"
            "  rank 0 of jobs/a on cores 0-15\n"
            "w         READY\n");
}

TEST(TableTest, ATextOfOthersStaysInItsCell) {
  Table table({{"REASON"}});
  table.AddRow({{"a\nb\x1b[2J"}});
  table.AddLine("c\nd");
  EXPECT_EQ(table.Text(true), "REASON\na\\nb\\u001b[2J\n  c\\nd\n");
}

}  // namespace
}  // namespace troupe
