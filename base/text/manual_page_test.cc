#include "base/text/manual_page.h"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(ManualPageTest, BeginsWithItsTitleAndName) {
  EXPECT_EQ(ManualPage("troupe submit", "1.2.3", "Submits a job.").roff(),
            ".TH \"TROUPE\\-SUBMIT\" 1 \"\" \"troupe 1.2.3\" \"Troupe\"\n"
            ".nh\n.ad l\n"
            ".SH NAME\n"
            "troupe\\-submit \\- Submits a job\n");
}

TEST(ManualPageTest, HasSectionsTextsLinesAndEntries) {
  ManualPage page("a", "1", "b");
  const size_t begin = page.roff().size();
  page.AddSection("EXIT STATUS");
  page.AddSubsection("more");
  page.AddText("one\ntwo\n\nthree");
  page.AddLines("a [--b]\na --c");
  page.AddEntry("--workers", "N", "number of workers");
  page.AddEntry("--wet", "", "does not wait");
  EXPECT_EQ(page.roff().substr(begin),
            ".SH \"EXIT STATUS\"\n"
            ".SS \"more\"\n"
            ".PP\none\ntwo\n"
            ".PP\nthree\n"
            ".PP\n.nf\na [\\-\\-b]\na \\-\\-c\n.fi\n"
            ".TP\n\\fB\\-\\-workers\\fR \\fIN\\fR\nnumber of workers\n"
            ".TP\n\\fB\\-\\-wet\\fR\ndoes not wait\n");
}

TEST(ManualPageTest, NoCharacterOfATextIsReadAsARequestOfRoff) {
  ManualPage page("a", "1", "b");
  const size_t begin = page.roff().size();
  page.AddText(".so /etc/passwd\n'it' \\fB \"x\" `y` ~ ^ a.b");
  EXPECT_EQ(page.roff().substr(begin),
            ".PP\n\\&.so /etc/passwd\n"
            "\\(aqit\\(aq \\efB \\(dqx\\(dq \\(gay\\(ga \\(ti \\(ha a.b\n");
  page.AddEntry(".TP", ".x", ".y");
  EXPECT_TRUE(page.roff().ends_with(".TP\n\\fB\\&.TP\\fR \\fI\\&.x\\fR\n\\&.y\n")) << page.roff();
}

}  // namespace
}  // namespace troupe
