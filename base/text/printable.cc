#include "base/text/printable.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

#include "base/text/utf8.h"

namespace troupe {
namespace {

bool IsControl(uint32_t point) {
  return point < 0x20 || (point >= 0x7F && point <= 0x9F) || (point >= 0x2028 && point <= 0x202E) ||
         (point >= 0x2066 && point <= 0x2069);
}

std::string Escaped(uint32_t point) {
  if (point == '\n') return "\\n";
  if (point == '\r') return "\\r";
  return fmt::format("\\u{:04x}", point);
}

std::string Printable(std::string_view text, bool keeps_newlines) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const int bytes = Utf8Character(text);
    const std::string_view character = text.substr(0, static_cast<size_t>(bytes < 0 ? 1 : bytes));
    text.remove_prefix(character.size());
    if (bytes < 0) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(character[0]));
      continue;
    }
    const uint32_t point = CodePoint(character);
    const bool stays = !IsControl(point) || point == '\t' || (keeps_newlines && point == '\n');
    shown += stays ? std::string(character) : Escaped(point);
  }
  return shown;
}

}  // namespace

std::string TextFault(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const int bytes = Utf8Character(text.substr(at));
    if (bytes < 0) {
      return fmt::format("is not UTF-8: its byte {} is \\x{:02x}", at + 1,
                         static_cast<unsigned char>(text[at]));
    }
    const uint32_t point = CodePoint(text.substr(at, static_cast<size_t>(bytes)));
    if (IsControl(point))
      return fmt::format("has the control character U+{:04X} at its byte {}", point, at + 1);
    at += static_cast<size_t>(bytes);
  }
  return "";
}

std::string PrintableLine(std::string_view text) { return Printable(text, false); }

std::string PrintableLines(std::string_view text) { return Printable(text, true); }

}  // namespace troupe
