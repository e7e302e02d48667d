// Checksums of checkpoint files: CRC32C of every 4 MiB block, so that a reader of a few blocks can
// trust them, and SHA-256 of the whole.
#ifndef TROUPE_CHECKPOINT_DIGEST_H_
#define TROUPE_CHECKPOINT_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace troupe {

inline constexpr int64_t kDigestBlockBytes = int64_t{4} << 20;

// Blocks of a file of `bytes`; the last may be shorter.
constexpr int64_t DigestBlocks(int64_t bytes) {
  return bytes / kDigestBlockBytes + (bytes % kDigestBlockBytes != 0 ? 1 : 0);
}

// CRC-32C (Castagnoli, reflected, initial and final inversion) as of RFC 3720, continuing from
// `crc`, the value of the bytes before. By SSE4.2 where the processor has it.
uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

// The same by tables; what Crc32c does elsewhere.
uint32_t Crc32cPortable(std::span<const std::byte> bytes, uint32_t crc = 0);

// SHA-256 over appended bytes. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Append(std::span<const std::byte> bytes);
  // "sha256:" and 64 hexadecimal digits. REQUIRES: called once, last.
  std::string Finish();

 private:
  evp_md_ctx_st* context_;
};

std::string Sha256Of(std::span<const std::byte> bytes);

// True for "sha256:" and 64 digits of 0–9a–f.
bool IsSha256(std::string_view digest);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_DIGEST_H_
