#include "base/http/http_page.h"

#include <fmt/format.h>

namespace troupe {
namespace {

std::string_view PhraseOf(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Service Unavailable";
  }
}

}  // namespace

HttpRequest ParseRequest(std::string_view head) {
  constexpr HttpRequest kBad{.refused = 400};
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const size_t first = line.find(' ');
  const size_t second = line.rfind(' ');
  if (first == line.npos || second == first) return kBad;
  const std::string_view version = line.substr(second + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return kBad;
  std::string_view path = line.substr(first + 1, second - first - 1);
  if (!path.starts_with('/') || path.find(' ') != path.npos) return kBad;
  path = path.substr(0, path.find('?'));
  const std::string_view method = line.substr(0, first);
  if (method != "GET" && method != "HEAD") return {.refused = 405};
  return {.path = path, .only_head = method == "HEAD"};
}

std::string AnswerOf(const HttpPage& page, bool only_head) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n{}",
      page.code, PhraseOf(page.code), page.type, page.body.size(),
      page.code == 405 ? "Allow: GET, HEAD\r\n" : "", only_head ? "" : page.body);
}

}  // namespace troupe
