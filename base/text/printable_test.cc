#include "base/text/printable.h"

#include <gtest/gtest.h>

#include <string>

namespace troupe {
namespace {

TEST(Printable, PlainTextStaysAsItIs) {
  for (const std::string& text :
       {std::string(), std::string("/data/größe € 😀 ñ"), std::string("العربية \u200f\u00a0")}) {
    EXPECT_EQ(TextFault(text), "");
    EXPECT_EQ(PrintableLine(text), text);
    EXPECT_EQ(PrintableLines(text), text);
  }
}

TEST(Printable, ControlCharactersAreNamedAndShown) {
  const struct {
    std::string text;
    std::string shown;
    std::string fault;
  } cases[] = {
      {"a\x1b[31m", "a\\u001b[31m", "has the control character U+001B at its byte 2"},
      {std::string("\0", 1), "\\u0000", "has the control character U+0000 at its byte 1"},
      {"a\r\x7f", "a\\r\\u007f", "has the control character U+000D at its byte 2"},
      {"ä\u0085", "ä\\u0085", "has the control character U+0085 at its byte 3"},
      {"\u009b31m", "\\u009b31m", "has the control character U+009B at its byte 1"},
      {"\u2028\u2029", "\\u2028\\u2029", "has the control character U+2028 at its byte 1"},
      {"\u202a\u202e", "\\u202a\\u202e", "has the control character U+202A at its byte 1"},
      {"\u2066\u2069", "\\u2066\\u2069", "has the control character U+2066 at its byte 1"},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(PrintableLine(each.text), each.shown);
    EXPECT_EQ(PrintableLines(each.text), each.shown);
    EXPECT_EQ(TextFault(each.text), each.fault);
  }
}

TEST(Printable, OnlySeveralLinesKeepTheirNewlines) {
  EXPECT_EQ(PrintableLine("a\n\tb\r\n"), "a\\n\tb\\r\\n");
  EXPECT_EQ(PrintableLines("a\n\tb\r\n"), "a\n\tb\\r\n");
  EXPECT_EQ(TextFault("a\tb"), "has the control character U+0009 at its byte 2");
  EXPECT_EQ(TextFault("a\n"), "has the control character U+000A at its byte 2");
}

TEST(Printable, BytesThatAreNotUtf8AreShownByTheirNumbers) {
  EXPECT_EQ(PrintableLine("caf\xe9/x"), "caf\\xe9/x");
  EXPECT_EQ(PrintableLine("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(TextFault("/caf\xe9/x"), "is not UTF-8: its byte 5 is \\xe9");
  EXPECT_EQ(TextFault("\x9b"), "is not UTF-8: its byte 1 is \\x9b");
}

}  // namespace
}  // namespace troupe
