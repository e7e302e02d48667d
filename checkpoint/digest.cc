#include "checkpoint/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <xxhash.h>
#if defined(__x86_64__)
#include <nmmintrin.h>
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

#if defined(__x86_64__)
// The crc32 instruction has a latency of three cycles and a throughput of one per cycle, so three
// independent lanes of this many bytes are computed together.
constexpr size_t kLaneBytes = 4096;

// Maps a CRC state to the state after kLaneBytes zero bytes. The map is linear in the bits of the
// state, so one table per byte of the state represents it.
class LaneShift {
 public:
  __attribute__((target("sse4.2"))) LaneShift() {
    std::array<uint32_t, 32> of_bit;
    for (size_t bit = 0; bit < 32; ++bit) {
      uint64_t state = uint32_t{1} << bit;
      for (size_t at = 0; at < kLaneBytes; at += 8) state = _mm_crc32_u64(state, 0);
      of_bit[bit] = static_cast<uint32_t>(state);
    }
    for (size_t k = 0; k < 4; ++k) {
      for (size_t b = 0; b < 256; ++b) {
        for (size_t bit = 0; bit < 8; ++bit) {
          if ((b >> bit & 1) != 0) tables_[k][b] ^= of_bit[8 * k + bit];
        }
      }
    }
  }

  uint32_t operator()(uint64_t state) const {
    return tables_[0][state & 0xFF] ^ tables_[1][state >> 8 & 0xFF] ^
           tables_[2][state >> 16 & 0xFF] ^ tables_[3][state >> 24 & 0xFF];
  }

 private:
  std::array<std::array<uint32_t, 256>, 4> tables_{};
};

inline uint64_t WordAt(const std::byte* at) {
  uint64_t word;
  std::memcpy(&word, at, 8);
  return word;
}

__attribute__((target("sse4.2"))) uint32_t Crc32cSse42(std::span<const std::byte> bytes,
                                                       uint32_t crc) {
  static const LaneShift shift;
  uint64_t state = ~crc;
  const std::byte* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 3 * kLaneBytes; at += 3 * kLaneBytes, left -= 3 * kLaneBytes) {
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < kLaneBytes; i += 8) {
      state = _mm_crc32_u64(state, WordAt(at + i));
      second = _mm_crc32_u64(second, WordAt(at + kLaneBytes + i));
      third = _mm_crc32_u64(third, WordAt(at + 2 * kLaneBytes + i));
    }
    state = shift(shift(state) ^ second) ^ third;
  }
  for (; left >= 8; at += 8, left -= 8) state = _mm_crc32_u64(state, WordAt(at));
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
