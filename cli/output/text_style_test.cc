#include "cli/output/text_style.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace troupe {
namespace {

TEST(TextStyleTest, ANumberOfColumnsIsWhole) {
  EXPECT_EQ(ColumnsIn("50"), 50u);
  EXPECT_EQ(ColumnsIn("10000"), 10'000u);
  for (const char* text : {"", "0", "-1", "50x", "x", " 50", "10001", "99999999999999999999"})
    EXPECT_EQ(ColumnsIn(text), std::nullopt) << text;
  EXPECT_EQ(ColumnsIn(nullptr), std::nullopt);
}

TEST(TextStyleTest, COLUMNSComesBeforeTheWindow) {
  setenv("COLUMNS", "50", 1);
  EXPECT_EQ(TerminalColumns(STDOUT_FILENO), 50u);
  setenv("COLUMNS", "none", 1);
  EXPECT_GT(TerminalColumns(STDOUT_FILENO), 0u);
  unsetenv("COLUMNS");
}

TEST(TextStyleTest, APathIsRelativeToTheWorkingDirectory) {
  EXPECT_EQ(PathFromHere(WorkingDirectoryOrNone() + "/c/step-1"), "c/step-1");
  EXPECT_EQ(PathFromHere("/no/such/place"), "/no/such/place");
}

TEST(TextStyleTest, AFileHasNoWidth) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  setenv("COLUMNS", "50", 1);
  const TextStyle style = TextStyleOf(ends[1]);
  unsetenv("COLUMNS");
  EXPECT_EQ(style.columns, kAnyColumns);
  EXPECT_FALSE(style.colours);
  EXPECT_EQ(style.directory, "") << "scripts read whole paths";
  EXPECT_EQ(TextStyleFromHere(ends[1]).directory, WorkingDirectoryOrNone());
  EXPECT_EQ(TextStyleFromHere(ends[1]).columns, kAnyColumns);
  close(ends[0]);
  close(ends[1]);
}

TEST(TextStyleTest, ALineIsBrokenWhereItIsTooWide) {
  EXPECT_EQ(WrappedLine("one two three", {}), "one two three\n");
  EXPECT_EQ(WrappedLine("one two three", {.columns = 7}), "one two\n  three\n");
  EXPECT_EQ(WrappedLine("one\ntwo", {}), "one\\ntwo\n") << "a name begins no line";
}

}  // namespace
}  // namespace troupe
