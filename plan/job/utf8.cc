#include "plan/job/utf8.h"

#include <cstddef>
#include <cstdint>

namespace troupe {

bool IsUtf8(std::string_view text) {
  // The least code point of sequences of two, three and four bytes.
  constexpr uint32_t kLeast[] = {0x80, 0x800, 0x10000};
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i++]);
    if (lead < 0x80) continue;
    const int more = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    if (lead < 0xC2 || lead > 0xF4) return false;
    uint32_t point = lead & (0x3F >> more);
    for (int byte = 0; byte < more; ++byte, ++i) {
      if (i == text.size() || (static_cast<uint8_t>(text[i]) & 0xC0) != 0x80) return false;
      point = point << 6 | (static_cast<uint8_t>(text[i]) & 0x3F);
    }
    const bool is_surrogate = point >= 0xD800 && point <= 0xDFFF;
    if (point < kLeast[more - 1] || is_surrogate || point > 0x10FFFF) return false;
  }
  return true;
}

}  // namespace troupe
