// Checksums of checkpoint files: CRC-32C of every 4 MiB block, so that a reader of a few blocks can
// verify them, and 128-bit XXH3 of the whole file, which also serves to identify files. Neither
// protects against malice, and need not: anyone who may write the folder may write a checkpoint. A
// manifest, which is small, has SHA-256.
#ifndef TROUPE_CHECKPOINT_FORMAT_DIGEST_H_
#define TROUPE_CHECKPOINT_FORMAT_DIGEST_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct XXH3_state_s;

namespace troupe {

inline constexpr int64_t kDigestBlockBytes = int64_t{4} << 20;

// Returns the number of blocks of a file of `bytes` bytes; the last may be shorter.
constexpr int64_t DigestBlocks(int64_t bytes) {
  return bytes / kDigestBlockBytes + (bytes % kDigestBlockBytes != 0 ? 1 : 0);
}

// Returns CRC-32C (Castagnoli, reflected, initial and final inversion) as in RFC 3720, continued
// from `crc`, the value of the preceding bytes. Computed by ISA-L; in bare builds, which have no
// such library, by Crc32cPortable.
uint32_t Crc32c(std::span<const std::byte> bytes, uint32_t crc = 0);

// The table-driven version of Crc32c.
uint32_t Crc32cPortable(std::span<const std::byte> bytes, uint32_t crc = 0);

// Computes both checksums of a file in one pass while its bytes are appended from front to back.
// Not thread-safe.
class FileChecksums {
 public:
  FileChecksums();
  ~FileChecksums();
  FileChecksums(const FileChecksums&) = delete;
  FileChecksums& operator=(const FileChecksums&) = delete;

  // REQUIRES: every append except the last consists of whole blocks.
  void Append(std::span<const std::byte> bytes);

  // Returns the CRC-32C of each block so far.
  const std::vector<uint32_t>& block_crc32c() const { return block_crc32c_; }
  // Returns the digest of the bytes so far: "xxh128:" and the 32 hexadecimal digits that
  // `xxh128sum` prints.
  std::string Digest() const;

 private:
  XXH3_state_s* state_;
  std::vector<uint32_t> block_crc32c_;
};

// Returns FileChecksums::Digest of all `bytes`.
std::string Xxh128Of(std::span<const std::byte> bytes);

// Returns "sha256:" and 64 hexadecimal digits.
std::string Sha256Of(std::span<const std::byte> bytes);

// Returns true for "sha256:" and 64 digits from 0–9a–f.
bool IsSha256(std::string_view digest);
// Returns true for "xxh128:" and 32 digits from 0–9a–f.
bool IsXxh128(std::string_view digest);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_FORMAT_DIGEST_H_
