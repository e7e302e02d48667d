// The pages of an HTTP server, and its requests and answers as text. Pure.
#ifndef TROUPE_BASE_HTTP_HTTP_PAGE_H_
#define TROUPE_BASE_HTTP_HTTP_PAGE_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace troupe {

struct HttpPage {
  int code = 200;
  std::string body;
  std::string_view type = "text/plain; charset=utf-8";
};

// Returns the page of a path, such as "/metrics". Called on the server's thread.
using HttpPages = std::function<HttpPage(std::string_view path)>;

inline HttpPage NotFoundPage() { return {404, "there is no such page\n"}; }

// Requests with a longer head, which the empty line ends, are refused.
inline constexpr size_t kMostHeadBytes = 8192;

struct HttpRequest {
  std::string_view path;  // without the query; part of the head
  int refused = 0;        // the code of the answer if this is no request for a page
  bool only_head = false;
};

// Returns the request that begins with `head`.
HttpRequest ParseRequest(std::string_view head);

// Returns the whole answer, after which the connection ends. With `only_head` the body is left out.
std::string AnswerOf(const HttpPage& page, bool only_head);

}  // namespace troupe

#endif  // TROUPE_BASE_HTTP_HTTP_PAGE_H_
