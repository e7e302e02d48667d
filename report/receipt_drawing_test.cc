#include "report/receipt_drawing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/text/receipt_text.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

JobReport Received(const v1::Receipt& receipt) {
  JobReport report;
  report.receipt = receipt;
  report.receipt_rows = ReceiptToRows(ReceiptToJson(receipt));
  return report;
}

std::string ReceiptHtml(const JobReport& report) {
  Markup page;
  DrawReceipt(report, &page);
  return page.text();
}

size_t TimesIn(const std::string& text, const std::string& part) {
  size_t times = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

TEST(ReceiptDrawingTest, EveryFieldIsInAFoldOfWhichTheFirstIsOpen) {
  v1::Receipt receipt;
  receipt.set_job("jobs/a");
  receipt.mutable_compile()->set_count(2);
  JobReport report = Received(receipt);
  report.receipt_rows.emplace_back("a_field.of_later", "7");
  const std::string html = ReceiptHtml(report);
  EXPECT_EQ(TimesIn(html, "<tr>"), report.receipt_rows.size());
  EXPECT_THAT(html, HasSubstr("<details id=\"receipt-environment\" open=\"\">"
                              "<summary>Environment</summary>"));
  for (const char* id : {"plan", "steady", "compile", "doubts", "others"}) {
    EXPECT_THAT(html, HasSubstr(std::string("<details id=\"receipt-") + id + "\"><summary>"));
  }
  EXPECT_EQ(TimesIn(html, "open="), 1u);
  // Only the fields that no fold names are in the last one.
  const std::string last = html.substr(html.find("receipt-others"));
  EXPECT_EQ(TimesIn(last, "<tr>"), 1u);
  EXPECT_THAT(last, HasSubstr("a_field.of_later"));
}

TEST(ReceiptDrawingTest, MfuWithoutAKnownPeakIsOneLine) {
  v1::Receipt receipt;
  receipt.mutable_steady()->set_mfu_convention("troupe-1");
  EXPECT_THAT(ReceiptHtml(Received(receipt)), HasSubstr("<th>steady.mfu</th>"))
      << "there is no steady step yet";
  receipt.mutable_steady()->set_steps(12);
  const std::string html = ReceiptHtml(Received(receipt));
  EXPECT_THAT(html, Not(HasSubstr("steady.mfu")));
  EXPECT_EQ(TimesIn(html, "MFU was not measured"), 1u);
  EXPECT_THAT(html, HasSubstr("troupe-worker --measure-peak --data-dir DIR"));
  receipt.mutable_steady()->set_mfu(0.25);
  EXPECT_THAT(ReceiptHtml(Received(receipt)), HasSubstr("<th>steady.mfu</th>\n<td>0.25</td>"));
  EXPECT_THAT(ReceiptHtml(Received(receipt)), Not(HasSubstr("not measured, because")));
}

TEST(ReceiptDrawingTest, AJobWithoutAReceiptHasANote) {
  EXPECT_EQ(ReceiptHtml(JobReport()), "<p class=\"note\">There is no receipt.</p>\n");
}

}  // namespace
}  // namespace troupe
