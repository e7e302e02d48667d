// The pages of an HTTP server, and its requests and answers as text. Pure.
#ifndef TROUPE_BASE_HTTP_HTTP_PAGE_H_
#define TROUPE_BASE_HTTP_HTTP_PAGE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

// A request for a page. Its texts are what the client sent, undecoded and unchecked: any bytes but
// control characters, of which headers may have tabs.
struct HttpRequest {
  int refused = 0;  // the code of the answer if this is no request for a page
  bool only_head = false;
  std::string path;           // such as "/metrics"; without the query
  std::string query;          // the text behind the first '?'; empty: none
  std::string host;           // the header Host; empty: none
  std::string authorization;  // the header Authorization; empty: none
  std::string if_none_match;  // the header If-None-Match; several joined by commas; empty: none
  // The headers Sec-Fetch-Site, -Mode and -Dest, with which browsers state why they ask.
  std::string fetch_site, fetch_mode, fetch_dest;
  std::string certificate;  // the client's, in PEM, verified; empty: none, or no TLS
};

struct HttpPage {
  int code = 200;
  std::string body;
  std::string_view type = "text/plain; charset=utf-8";  // outlives the page, as the names do
  // Further headers, each a name and its value. A value with a control character makes the answer
  // one of code 500.
  std::vector<std::pair<std::string_view, std::string>> headers = {};
};

// Returns the page of a request that is not refused.
using HttpPages = std::function<HttpPage(const HttpRequest&)>;

inline HttpPage NotFoundPage() { return {404, "there is no such page\n"}; }

// Requests with a longer head, which the empty line ends, are refused.
inline constexpr size_t kMostHeadBytes = 8192;

// Returns the request that begins with `head`, without a certificate. One with a line that is no
// header, or with two headers Host, Authorization or Sec-Fetch of one kind, is refused.
HttpRequest ParseRequest(std::string_view head);

// Returns the whole answer, after which the connection ends. With `only_head`, and with the code
// 304, the body is left out.
std::string AnswerOf(const HttpPage& page, bool only_head);

}  // namespace troupe

#endif  // TROUPE_BASE_HTTP_HTTP_PAGE_H_
