#include "report/markup.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(MarkupTest, TextAndAttributesAreEscaped) {
  Markup page;
  page.Open("p", {{"title", "\"><script>alert('1')</script>"}});
  page.Text("a & b < c\n");
  page.Text(std::string("\0\x1b[31m", 6));
  page.Text("\r\t\u009b31m\u2028\u202e\u2066ö\xe9");
  page.Close();
  EXPECT_EQ(page.text(),
            "<p title=\"&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;\">"
            "a &amp; b &lt; c\n\\u0000\\u001b[31m"
            "\\r\t\\u009b31m\\u2028\\u202e\\u2066ö\\xe9</p>\n");
}

TEST(MarkupTest, ElementsEndInTheOrderThatTheyBegan) {
  Markup page;
  page.Open("g");
  page.Element("text", {{"x", "1"}}, "a");
  page.Empty("path", {{"d", "M0 0"}});
  page.Close();
  EXPECT_EQ(page.text(), "<g><text x=\"1\">a</text>\n<path d=\"M0 0\"/>\n</g>\n");
}

TEST(MarkupTest, CoordinatesAreShort) {
  EXPECT_EQ(Coordinate(1.0 / 3), "0.3");
  EXPECT_EQ(Coordinate(12), "12");
  EXPECT_EQ(Coordinate(-0.04), "0");
}

}  // namespace
}  // namespace troupe
