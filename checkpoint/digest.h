// Checksums of checkpoint files: CRC32C of every 4 MiB block, so that a reader of a few blocks can
// trust them, and XXH3 of the whole in 128 bits, which also tells files apart. Neither withstands
// malice, and neither is to: whoever may write the folder may write a checkpoint. A manifest, which
// is small, has SHA-256.
#ifndef TROUPE_CHECKPOINT_DIGEST_H_
#define TROUPE_CHECKPOINT_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct XXH3_state_s;

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

// The checksums of a file whose bytes are appended from front to back, both in one pass. Not
// thread-safe.
class FileChecksums {
 public:
  FileChecksums();
  ~FileChecksums();
  FileChecksums(const FileChecksums&) = delete;
  FileChecksums& operator=(const FileChecksums&) = delete;

  // REQUIRES: all but the last append are of whole blocks.
  void Append(std::span<const std::byte> bytes);

  // Of the blocks so far.
  const std::vector<uint32_t>& block_crc32c() const { return block_crc32c_; }
  // Of the bytes so far: "xxh128:" and the 32 hexadecimal digits that `xxh128sum` prints.
  std::string Digest() const;

 private:
  XXH3_state_s* state_;
  std::vector<uint32_t> block_crc32c_;
};

// FileChecksums::Digest of all `bytes`.
std::string Xxh128Of(std::span<const std::byte> bytes);

// "sha256:" and 64 hexadecimal digits.
std::string Sha256Of(std::span<const std::byte> bytes);

// True for "sha256:" and 64 digits of 0–9a–f.
bool IsSha256(std::string_view digest);
// True for "xxh128:" and 32 such digits.
bool IsXxh128(std::string_view digest);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_DIGEST_H_
