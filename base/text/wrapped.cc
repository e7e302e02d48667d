#include "base/text/wrapped.h"

#include <algorithm>

namespace troupe {
namespace {

size_t CharactersOf(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0u) != 0x80u; }));
}

}  // namespace

std::string Wrapped(std::string_view text, size_t columns, std::string_view indent) {
  std::string lines;
  size_t used = 0;
  bool begins_line = true;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const size_t width = CharactersOf(word);
    if (!begins_line && used + 1 + width > columns) {
      lines += '\n';
      lines += indent;
      used = indent.size();
    } else if (!begins_line) {
      lines += ' ';
      ++used;
    }
    lines += word;
    used += width;
    begins_line = begins_line && word.empty();
    at = end + 1;
  }
  return lines;
}

}  // namespace troupe
