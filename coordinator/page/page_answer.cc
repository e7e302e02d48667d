#include "coordinator/page/page_answer.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "report/live/error_html.h"

namespace troupe {
namespace {

constexpr int kNotModified = 304;
constexpr std::string_view kHtmlType = "text/html; charset=utf-8";

// The same for all answers.
constexpr std::pair<std::string_view, std::string_view> kHeaders[] = {
    {"Content-Security-Policy",
     "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"}};

// Returns a quoted digest of the text.
std::string EntityTag(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int bytes = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &bytes, EVP_sha256(), nullptr);
  std::string tag = "\"";
  constexpr unsigned int kShownBytes = 16;
  for (unsigned int i = 0; i < std::min(bytes, kShownBytes); ++i)
    tag += fmt::format("{:02x}", digest[i]);
  return tag + "\"";
}

struct ErrorTitle {
  int code;
  const char* title;
};

ErrorTitle TitleOf(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
      return {400, "This address cannot be read"};
    case StatusCode::kUnauthenticated:
      return {401, "The page does not know you"};
    case StatusCode::kPermissionDenied:
      return {403, "You may not see this"};
    case StatusCode::kNotFound:
      return {404, "There is no such page"};
    default:
      return {503, "The coordinator does not answer now"};
  }
}

}  // namespace

HttpPage Finished(HttpPage page, const HttpRequest& request, PageCaching caching) {
  if (page.code == 200) {
    std::string tag = EntityTag(page.body);
    const std::string& known = request.if_none_match;
    if (known == "*" || known.find(tag) != std::string::npos) {
      page.code = kNotModified;
      page.body.clear();
    }
    page.headers.emplace_back("ETag", std::move(tag));
  }
  const bool is_brief = caching == PageCaching::kBriefly && page.code < 400;
  page.headers.emplace_back("Cache-Control", is_brief ? "max-age=60" : "no-store");
  for (const auto& [name, value] : kHeaders) page.headers.emplace_back(name, value);
  return page;
}

HttpPage HtmlPage(std::string html) { return {200, std::move(html), kHtmlType}; }

HttpPage PageOfError(const Status& error) {
  const auto [code, title] = TitleOf(error.code());
  const std::string text = code == 503 ? ToString(error) : std::string(Message(error));
  return {code, ErrorHtml(code, title, text), kHtmlType};
}

HttpPage PasswordPage(const Status& error) {
  HttpPage page = PageOfError(error);
  page.headers.emplace_back("WWW-Authenticate", "Basic realm=\"Troupe\", charset=\"UTF-8\"");
  return page;
}

HttpPage PageOfError(const Status& error, const HttpRequest& request) {
  if (error.code() != StatusCode::kUnauthenticated) return PageOfError(error);
  if (request.certificate.empty()) return PasswordPage(error);
  return PageOfError(PermissionDenied("{}", Message(error)));
}

HttpPage OtherSitePage() {
  return PageOfError(PermissionDenied("another site asks for this page; open it by its address"));
}

HttpPage WrongHostPage() {
  constexpr int kMisdirected = 421;
  return {kMisdirected,
          ErrorHtml(kMisdirected, "The page is not served under this name",
                    "Without TLS the page is served under an IP address or localhost only."),
          kHtmlType};
}

}  // namespace troupe
