#include "base/text/wrapped.h"

#include <gtest/gtest.h>

#include "base/text/display_width.h"

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
  EXPECT_EQ(Wrapped("模型 模型", 9), "模型 模型");
  EXPECT_EQ(Wrapped("模型 模型", 8), "模型\n模型") << "a wide character has two columns";
}

TEST(Wrapped, ALongWordIsBrokenWhereThatIsWanted) {
  const auto broken = [](std::string_view text, size_t columns, std::string_view indent = "") {
    return Wrapped(text, columns, indent, LongWords::kBroken);
  };
  EXPECT_EQ(broken("in /a/folder/far/away it is", 10), "in\n/a/folder/\nfar/away\nit is");
  EXPECT_EQ(broken("abcdefghij kl", 4), "abcd\nefgh\nij\nkl");
  EXPECT_EQ(broken("abcdefghij kl", 6, "  "), "abcdef\n  ghij\n  kl");
  EXPECT_EQ(broken("/abcdefgh", 4), "/abc\ndefg\nh") << "a slash at the beginning ends no line";
  EXPECT_EQ(broken("模型模", 3), "模\n型\n模");
  EXPECT_EQ(broken("模型", 1), "模\n型") << "a character is not broken";
  EXPECT_EQ(broken("one two", 7), "one two");
}

TEST(WrappedBehind, LinesBeginBelowTheText) {
  EXPECT_EQ(WrappedBehind("path  ", "one two three", 13), "path  one two\n      three");
  EXPECT_EQ(WrappedBehind("path  ", "/a/folder/far/away", 18), "path  /a/folder/\n      far/away");
  EXPECT_EQ(WrappedBehind("path  ", "one two three", kAnyColumns), "path  one two three");
  EXPECT_EQ(WrappedBehind("a long prefix  ", "one two three", 4),
            "a long prefix  one two\n               three");
  EXPECT_EQ(WrappedBehind("path  ", "", 13), "path  ");
}

}  // namespace
}  // namespace troupe
