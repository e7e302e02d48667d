#include "report/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <regex>
#include <string>

namespace troupe {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

constexpr double kLeastContrast = 4.5;  // that of WCAG 2.1, level AA
constexpr const char* kDarkInk = "#10151b";

using Colour = std::array<double, 3>;  // from 0 to 1

Colour ColourOf(const std::string& hex) {
  Colour colour;
  for (size_t i = 0; i < 3; ++i)
    colour[i] = std::stoi(hex.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
  return colour;
}

// The value of a variable in the style of a theme.
Colour Variable(const std::string& theme, const std::string& name) {
  std::smatch found;
  const bool is_there =
      std::regex_search(theme, found, std::regex("--" + name + ": (#[0-9a-f]{6});"));
  EXPECT_TRUE(is_there) << name;
  return is_there ? ColourOf(found[1]) : Colour();
}

Colour Mixed(const Colour& above, double part, const Colour& below) {
  Colour mixed;
  for (size_t i = 0; i < 3; ++i) mixed[i] = part * above[i] + (1 - part) * below[i];
  return mixed;
}

double Luminance(const Colour& colour) {
  const auto linear = [](double value) {
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2]);
}

double Contrast(const Colour& one, const Colour& other) {
  const auto [low, high] = std::minmax({Luminance(one), Luminance(other)});
  return (high + 0.05) / (low + 0.05);
}

TEST(PageTest, ABannerHasAHeadlineAndAList) {
  Markup page;
  DrawBanner("2 <reasons>", std::vector<std::string>{"a", "b & c"}, &page);
  EXPECT_EQ(page.text(),
            "<div class=\"banner\" role=\"note\"><strong>2 &lt;reasons&gt;</strong>\n"
            "<ul><li>a</li>\n<li>b &amp; c</li>\n</ul>\n</div>\n");
}

TEST(PageTest, APageHasItsStyleInline) {
  Markup page;
  OpenPage("a", "", &page);
  OpenSection("parts", "Parts", &page);
  CloseSection(&page);
  ClosePage(&page);
  EXPECT_THAT(page.text(), HasSubstr("<style>" + PageStyle() + "</style>"));
  EXPECT_THAT(page.text(), HasSubstr("<section id=\"parts\"><h2>Parts</h2>\n</section>"));
}

TEST(PageTest, OnAPhoneNamesAreAboveValuesAndWideDrawingsScroll) {
  Markup page;
  DrawRows({{"job", "jobs/a"}}, &page);
  EXPECT_THAT(page.text(), HasSubstr("<table class=\"rows\">"));
  EXPECT_THAT(PageStyle(), ContainsRegex("max-width: 600px.*\\.rows th, \\.rows td \\{ display: "
                                         "block; \\}"));
  EXPECT_THAT(PageStyle(), HasSubstr(".wide { overflow-x: auto; }"));
}

TEST(PageTest, WordsOnColoursCanBeRead) {
  const std::string& style = PageStyle();
  for (const char* rule :
       {"background: color-mix(in srgb, var(--tone) 30%, var(--page))", "fill-opacity: .4;",
        ".full :is(.c1, .c4, .c5, .c6) + text.block { fill: #10151b; }",
        ".pale .fill + text.block { fill: var(--text); }", "svg text.block { fill: var(--on);"})
    ASSERT_THAT(style, HasSubstr(rule));
  const size_t dark = style.find("prefers-color-scheme: dark");
  ASSERT_NE(dark, std::string::npos);
  for (const std::string& theme : {style.substr(0, dark), style.substr(dark)}) {
    const Colour text = Variable(theme, "text");
    for (const std::string number : {"0", "1", "2", "3", "4", "5", "6", "7", "8"}) {
      const Colour colour = Variable(theme, "c" + number);
      EXPECT_GE(Contrast(text, Mixed(colour, 0.3, Variable(theme, "page"))), kLeastContrast);
      EXPECT_GE(Contrast(text, Mixed(colour, 0.4, Variable(theme, "panel"))), kLeastContrast);
      const bool is_dark = std::string("1456").find(number) != std::string::npos;
      const Colour word = is_dark ? ColourOf(kDarkInk) : Variable(theme, "on");
      EXPECT_GE(Contrast(word, colour), kLeastContrast) << number << " of " << theme.substr(0, 40);
    }
  }
}

}  // namespace
}  // namespace troupe
