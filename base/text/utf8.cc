#include "base/text/utf8.h"

#include <cstring>

namespace troupe {

int Utf8Character(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = at(0);
  if (lead < 0x80) return 1;
  // The second byte's range depends on the first; the others are 80..BF.
  unsigned least = 0x80, most = 0xBF;
  size_t bytes = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    bytes = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    bytes = 3;
    if (lead == 0xE0) least = 0xA0;
    if (lead == 0xED) most = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    bytes = 4;
    if (lead == 0xF0) least = 0x90;
    if (lead == 0xF4) most = 0x8F;
  } else {
    return -1;
  }
  for (size_t i = 1; i < bytes; ++i) {
    if (i >= text.size() || at(i) < least || at(i) > most) return -static_cast<int>(i);
    least = 0x80;
    most = 0xBF;
  }
  return static_cast<int>(bytes);
}

uint32_t CodePoint(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  uint32_t point = character.size() == 1 ? lead : lead & (0x7Fu >> character.size());
  for (const char byte : character.substr(1))
    point = point << 6 | (static_cast<unsigned char>(byte) & 0x3Fu);
  return point;
}

size_t WellFormedPrefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight;
    if (at + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    const int bytes = Utf8Character(text.substr(at));
    if (bytes < 0) return at;
    at += static_cast<size_t>(bytes);
  }
  return at;
}

int64_t ReplaceIllFormed(std::string& text) {
  size_t at = WellFormedPrefix(text);
  if (at == text.size()) return 0;
  int64_t replaced = 0;
  std::string well_formed = text.substr(0, at);
  while (at < text.size()) {
    const std::string_view rest = std::string_view(text).substr(at);
    const size_t good = WellFormedPrefix(rest);
    well_formed += rest.substr(0, good);
    at += good;
    if (at == text.size()) break;
    at += static_cast<size_t>(-Utf8Character(rest.substr(good)));
    well_formed += "\xEF\xBF\xBD";
    ++replaced;
  }
  text = std::move(well_formed);
  return replaced;
}

}  // namespace troupe
