#include "base/http/url_text.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <utility>

#include "base/text/printable.h"

namespace troupe {
namespace {

std::optional<std::string> Unescape(std::string_view text, bool plus_is_space) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '+' && plus_is_space) {
      plain += ' ';
    } else if (text[at] == '%') {
      const std::string_view digits = text.substr(at + 1, 2);
      const char* const end = digits.data() + digits.size();
      unsigned char byte = 0;
      const auto [read, error] = std::from_chars(digits.data(), end, byte, 16);
      if (digits.size() != 2 || error != std::errc() || read != end) return std::nullopt;
      plain += static_cast<char>(byte);
      at += 2;
    } else {
      plain += text[at];
    }
  }
  if (!TextFault(plain).empty()) return std::nullopt;
  return plain;
}

}  // namespace

std::optional<QueryPairs> DecodeQuery(std::string_view query) {
  QueryPairs pairs;
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(part.size() < query.size() ? part.size() + 1 : part.size());
    if (part.empty()) continue;
    const size_t equals = std::min(part.find('='), part.size());
    std::optional<std::string> key = Unescape(part.substr(0, equals), true);
    std::optional<std::string> value =
        Unescape(part.substr(std::min(equals + 1, part.size())), true);
    if (!key || !value) return std::nullopt;
    if (!pairs.try_emplace(*std::move(key), *std::move(value)).second) return std::nullopt;
  }
  return pairs;
}

std::optional<std::string> DecodePath(std::string_view path) { return Unescape(path, false); }

}  // namespace troupe
