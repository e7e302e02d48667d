#include "base/text/wrapped.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(Wrapped, LinesEndAtSpacesAndAreAsLongAsTheyMayBe) {
  EXPECT_EQ(Wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(Wrapped("one two three", 6), "one\ntwo\nthree");
  EXPECT_EQ(Wrapped("one two three", 13), "one two three");
  EXPECT_EQ(Wrapped("", 5), "");
}

TEST(Wrapped, AnIndentCountsAndIsNotBeforeTheFirstLine) {
  EXPECT_EQ(Wrapped("one two three", 7, "  "), "one two\n  three");
  EXPECT_EQ(Wrapped("aaaa bbbb cccc", 9, "  "), "aaaa bbbb\n  cccc");
  EXPECT_EQ(Wrapped("aaaa bbbb c d", 7, "  "), "aaaa\n  bbbb\n  c d");
}

TEST(Wrapped, AWordThatIsTooLongStaysWhole) {
  EXPECT_EQ(Wrapped("in /a/folder/far/away it is", 8), "in\n/a/folder/far/away\nit is");
}

TEST(Wrapped, ACharacterOfSeveralBytesIsOneColumn) {
  EXPECT_EQ(Wrapped("2 × 3 × 4", 9), "2 × 3 × 4");
  EXPECT_EQ(Wrapped("2 × 3 × 4", 8), "2 × 3 ×\n4");
}

}  // namespace
}  // namespace troupe
