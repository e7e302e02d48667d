#include "coordinator/page/page_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string HeaderOf(const HttpPage& page, std::string_view name) {
  const auto found =
      std::ranges::find(page.headers, name, [](const auto& pair) { return pair.first; });
  return found == page.headers.end() ? "" : found->second;
}

TEST(PageAnswer, EveryAnswerForbidsWhatIsNotTheHosts) {
  for (const HttpPage& given :
       {HtmlPage("<p>"), PageOfError(NotFound("x")), PasswordPage(Unauthenticated("x")),
        WrongHostPage(), OtherSitePage()}) {
    const HttpPage page = Finished(given, {}, PageCaching::kNever);
    EXPECT_THAT(HeaderOf(page, "Content-Security-Policy"), HasSubstr("default-src 'none'"));
    EXPECT_THAT(HeaderOf(page, "Content-Security-Policy"), HasSubstr("frame-ancestors 'none'"));
    EXPECT_EQ(HeaderOf(page, "X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(HeaderOf(page, "Referrer-Policy"), "no-referrer");
    EXPECT_EQ(HeaderOf(page, "Cache-Control"), "no-store");
    EXPECT_EQ(HeaderOf(page, "Cross-Origin-Resource-Policy"), "same-origin");
    EXPECT_EQ(HeaderOf(page, "Cross-Origin-Opener-Policy"), "same-origin");
    EXPECT_EQ(HeaderOf(page, "Set-Cookie"), "");
  }
  EXPECT_EQ(HeaderOf(Finished({200, "x"}, {}, PageCaching::kBriefly), "Cache-Control"),
            "max-age=60");
}

TEST(PageAnswer, APageThatIsKnownIsNotSentAgain) {
  const HttpPage first = Finished(HtmlPage("one"), {}, PageCaching::kNever);
  const std::string tag = HeaderOf(first, "ETag");
  EXPECT_THAT(tag, testing::MatchesRegex("\"[0-9a-f]+\""));
  EXPECT_EQ(first.body, "one");
  for (const std::string& known : {tag, "\"x\", W/" + tag, std::string("*")}) {
    const HttpPage again = Finished(HtmlPage("one"), {.if_none_match = known}, PageCaching::kNever);
    EXPECT_EQ(again.code, 304) << known;
    EXPECT_EQ(again.body, "");
    EXPECT_EQ(HeaderOf(again, "ETag"), tag);
  }
  EXPECT_EQ(Finished(HtmlPage("two"), {.if_none_match = tag}, PageCaching::kNever).code, 200);
  EXPECT_EQ(Finished(PageOfError(NotFound("x")), {.if_none_match = "*"}, PageCaching::kNever).code,
            404);
}

TEST(PageAnswer, AnErrorHasItsCodeAndItsTextIsEscaped) {
  EXPECT_EQ(PageOfError(InvalidArgument("x")).code, 400);
  EXPECT_EQ(PageOfError(PermissionDenied("x")).code, 403);
  EXPECT_EQ(PageOfError(NotFound("x")).code, 404);
  EXPECT_EQ(PageOfError(Unavailable("x")).code, 503);
  const HttpPage page = PageOfError(InvalidArgument("<script>alert(1)</script>"));
  EXPECT_THAT(page.body, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page.body, HasSubstr("alert(1)"));
}

TEST(PageAnswer, WithoutCredentialsABrowserIsAskedForAPassword) {
  const HttpPage page = PasswordPage(Unauthenticated("x"));
  EXPECT_EQ(page.code, 401);
  EXPECT_EQ(HeaderOf(page, "WWW-Authenticate"), "Basic realm=\"Troupe\", charset=\"UTF-8\"");
  EXPECT_EQ(WrongHostPage().code, 421);
  EXPECT_EQ(OtherSitePage().code, 403);
}

TEST(PageAnswer, ABrowserWithACertificateIsNotAskedForAPassword) {
  constexpr char kAsks[] = "WWW-Authenticate";
  const HttpPage asked = PageOfError(Unauthenticated("revoked"), {});
  EXPECT_EQ(asked.code, 401);
  EXPECT_NE(HeaderOf(asked, kAsks), "");
  const HttpPage certified = PageOfError(Unauthenticated("revoked"), {.certificate = "PEM"});
  EXPECT_EQ(certified.code, 403);
  EXPECT_THAT(certified.body, HasSubstr("revoked"));
  EXPECT_EQ(HeaderOf(certified, kAsks), "");
  EXPECT_EQ(PageOfError(NotFound("x"), {.certificate = "PEM"}).code, 404);
  EXPECT_EQ(PageOfError(NotFound("x"), {}).code, 404);
}

}  // namespace
}  // namespace troupe
