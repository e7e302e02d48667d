#include "checkpoint/format/digest.h"

#include <fmt/format.h>
#if !defined(TROUPE_WITHOUT_ISAL)
#include <isa-l/crc.h>
#endif
#include <openssl/evp.h>
#include <xxhash.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"

namespace troupe {
namespace {

// tables[k][b] is the CRC of byte b followed by k zero bytes; eight tables process eight bytes at a
// time.
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

constexpr std::string_view kSha256Prefix = "sha256:";
constexpr std::string_view kXxh128Prefix = "xxh128:";

bool IsDigest(std::string_view digest, std::string_view prefix, size_t digits) {
  return digest.size() == prefix.size() + digits && digest.starts_with(prefix) &&
         std::all_of(digest.begin() + static_cast<ptrdiff_t>(prefix.size()), digest.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

constexpr size_t kStretchBytes = size_t{96} << 10;

#if !defined(TROUPE_WITHOUT_ISAL)
// ISA-L returns with data in the upper halves of the vector registers, with which SSE code, such as
// that of XXH3, takes twice as long.
#if defined(__x86_64__)
__attribute__((target("avx"))) void ClearUpperHalves() { _mm256_zeroupper(); }

bool HasAvx() {
  static const bool has_avx = __builtin_cpu_supports("avx");
  return has_avx;
}
#else
void ClearUpperHalves() {}

bool HasAvx() { return false; }
#endif
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
#if defined(TROUPE_WITHOUT_ISAL)
  return Crc32cPortable(bytes, crc);
#else
  uint32_t state = ~crc;
  constexpr size_t kBytesPerCall = size_t{1} << 30;  // the library's lengths are ints
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), kBytesPerCall));
    // The library reads its argument only.
    auto* const data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(part.data()));
    state = crc32_iscsi(data, static_cast<int>(part.size()), state);
    bytes = bytes.subspan(part.size());
  }
  if (HasAvx()) ClearUpperHalves();
  return ~state;
#endif
}

FileChecksums::FileChecksums() : state_(XXH3_createState()) {
  TROUPE_CHECK(state_ != nullptr && XXH3_128bits_reset(state_) == XXH_OK);
}

FileChecksums::~FileChecksums() { XXH3_freeState(state_); }

void FileChecksums::Append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto block = bytes.first(std::min(bytes.size(), static_cast<size_t>(kDigestBlockBytes)));
    // The block is processed in stretches, so that the second checksum finds the bytes in the
    // core's cache.
    uint32_t crc = 0;
    for (size_t at = 0; at < block.size(); at += kStretchBytes) {
      const auto stretch = block.subspan(at, std::min(kStretchBytes, block.size() - at));
      crc = Crc32c(stretch, crc);
      TROUPE_CHECK(XXH3_128bits_update(state_, stretch.data(), stretch.size()) == XXH_OK);
    }
    block_crc32c_.push_back(crc);
    bytes = bytes.subspan(block.size());
  }
}

std::string FileChecksums::Digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_);
  return fmt::format("{}{:016x}{:016x}", kXxh128Prefix, hash.high64, hash.low64);
}

std::string Xxh128Of(std::span<const std::byte> bytes) {
  FileChecksums checksums;
  checksums.Append(bytes);
  return checksums.Digest();
}

std::string Sha256Of(std::span<const std::byte> bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  TROUPE_CHECK(
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1 &&
      size == 32);
  std::string text(kSha256Prefix);
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

bool IsSha256(std::string_view digest) { return IsDigest(digest, kSha256Prefix, 64); }

bool IsXxh128(std::string_view digest) { return IsDigest(digest, kXxh128Prefix, 32); }

}  // namespace troupe
