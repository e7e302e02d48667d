#include "base/http/http_page.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <iterator>

namespace troupe {
namespace {

// The names of headers have these characters (RFC 9110, section 5.6.2).
constexpr std::string_view kNameCharacters =
    "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

std::string_view PhraseOf(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 421:
      return "Misdirected Request";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    default:
      return "";  // the phrase is optional
  }
}

// Tabs may be part of a header.
bool HasControl(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F;
  });
}

bool AreSameName(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

// Removes the first line from `lines`.
std::string_view TakeLine(std::string_view* lines) {
  const size_t end = lines->find("\r\n");
  const std::string_view line = lines->substr(0, end);
  lines->remove_prefix(end == lines->npos ? lines->size() : end + 2);
  return line;
}

// Returns whether all lines are headers that a request may have. A line that begins with a space,
// which once continued the line before it, is none: a space is no part of a name.
bool ReadHeaders(std::string_view lines, HttpRequest* request) {
  // Those that may come once.
  struct Sole {
    std::string_view name;
    std::string* value;
    bool has_come = false;
  };
  Sole soles[] = {{"Host", &request->host},
                  {"Authorization", &request->authorization},
                  {"Sec-Fetch-Site", &request->fetch_site},
                  {"Sec-Fetch-Mode", &request->fetch_mode},
                  {"Sec-Fetch-Dest", &request->fetch_dest}};
  while (!lines.empty()) {
    const std::string_view line = TakeLine(&lines);
    const size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon);
    if (colon == line.npos || name.empty() || HasControl(line)) return false;
    if (name.find_first_not_of(kNameCharacters) != name.npos) return false;
    const std::string_view value = Trimmed(line.substr(colon + 1));
    const auto sole =
        std::ranges::find_if(soles, [&](const Sole& one) { return AreSameName(name, one.name); });
    if (sole != std::end(soles)) {
      if (std::exchange(sole->has_come, true)) return false;
      *sole->value = value;
    } else if (AreSameName(name, "If-None-Match")) {
      if (!request->if_none_match.empty()) request->if_none_match += ", ";
      request->if_none_match += value;
    }
  }
  return true;
}

// Returns whether the line begins a request of HTTP/1.1 or 1.0, and refuses other methods than GET
// and HEAD.
bool ReadRequestLine(std::string_view line, HttpRequest* request) {
  const size_t first = line.find(' ');
  const size_t second = line.rfind(' ');
  if (first == line.npos || second == first || HasControl(line)) return false;
  const std::string_view version = line.substr(second + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return false;
  const std::string_view target = line.substr(first + 1, second - first - 1);
  if (!target.starts_with('/') || target.find_first_of(" \t") != target.npos) return false;
  const size_t mark = target.find('?');
  request->path = target.substr(0, mark);
  if (mark != target.npos) request->query = target.substr(mark + 1);
  const std::string_view method = line.substr(0, first);
  request->only_head = method == "HEAD";
  if (method != "GET" && method != "HEAD") request->refused = 405;
  return true;
}

}  // namespace

HttpRequest ParseRequest(std::string_view head) {
  std::string_view lines = head.substr(0, head.find("\r\n\r\n"));
  HttpRequest request;
  const bool is_request =
      ReadRequestLine(TakeLine(&lines), &request) && ReadHeaders(lines, &request);
  if (!is_request) return {.refused = 400};
  if (request.refused != 0) return {.refused = request.refused};
  return request;
}

std::string AnswerOf(const HttpPage& page, bool only_head) {
  const bool has_body = page.code != 304;
  std::string headers;
  if (has_body) {
    headers =
        fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", page.type, page.body.size());
  }
  if (page.code == 405) headers += "Allow: GET, HEAD\r\n";
  for (const auto& [name, value] : page.headers) {
    if (HasControl(value)) {
      return AnswerOf({500, fmt::format("the header {} has a control character\n", name)},
                      only_head);
    }
    headers += fmt::format("{}: {}\r\n", name, value);
  }
  const std::string_view body = has_body && !only_head ? std::string_view(page.body) : "";
  return fmt::format("HTTP/1.1 {} {}\r\n{}Connection: close\r\n\r\n{}", page.code,
                     PhraseOf(page.code), headers, body);
}

}  // namespace troupe
