#include "checkpoint/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"

namespace troupe {
namespace {

// tables[k][b]: the CRC of byte b followed by k zero bytes, for eight bytes at a time.
constexpr std::array<std::array<uint32_t, 256>, 8> MakeTables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
    tables[0][b] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t b = 0; b < 256; ++b) {
      tables[k][b] = (tables[k - 1][b] >> 8) ^ tables[0][tables[k - 1][b] & 0xFF];
    }
  }
  return tables;
}
constexpr auto kTables = MakeTables();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t Crc32cSse42(std::span<const std::byte> bytes,
                                                       uint32_t crc) {
  uint64_t state = ~crc;
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    state = _mm_crc32_u64(state, word);
  }
  uint32_t narrow = static_cast<uint32_t>(state);
  for (; left > 0; ++at, --left) narrow = _mm_crc32_u8(narrow, std::to_integer<uint8_t>(*at));
  return ~narrow;
}
#endif

}  // namespace

uint32_t Crc32cPortable(std::span<const std::byte> bytes, uint32_t crc) {
  uint32_t state = ~crc;
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    word ^= state;
    state = 0;
    for (size_t k = 0; k < 8; ++k) state ^= kTables[7 - k][(word >> (8 * k)) & 0xFF];
  }
  for (; left > 0; ++at, --left) {
    state = (state >> 8) ^ kTables[0][(state ^ std::to_integer<uint32_t>(*at)) & 0xFF];
  }
  return ~state;
}

uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t crc) {
#if defined(__x86_64__)
  static const bool has_sse42 = __builtin_cpu_supports("sse4.2");
  if (has_sse42) return Crc32cSse42(bytes, crc);
#endif
  return Crc32cPortable(bytes, crc);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  TROUPE_CHECK(context_ != nullptr && EVP_DigestInit_ex(context_, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() { EVP_MD_CTX_free(context_); }

void Sha256::Append(std::span<const std::byte> bytes) {
  TROUPE_CHECK(EVP_DigestUpdate(context_, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::Finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  TROUPE_CHECK(EVP_DigestFinal_ex(context_, digest.data(), &size) == 1 && size == 32);
  std::string text = "sha256:";
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

std::string Sha256Of(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.Append(bytes);
  return hash.Finish();
}

bool IsSha256(std::string_view digest) {
  constexpr std::string_view kPrefix = "sha256:";
  return digest.size() == kPrefix.size() + 64 && digest.starts_with(kPrefix) &&
         std::all_of(digest.begin() + kPrefix.size(), digest.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace troupe
