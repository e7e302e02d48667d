// The safetensors format (huggingface/safetensors): `u64 N | N bytes of JSON | buffer`.
//
// The parser trusts nothing: it refuses lengths beyond the file, duplicate names, unknown dtypes
// and keys, numbers that do not fit, and buffers with holes or overlaps. The header's own length
// bounds the memory use.
#ifndef TROUPE_CHECKPOINT_FORMAT_SAFETENSORS_H_
#define TROUPE_CHECKPOINT_FORMAT_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/format/slice.h"

namespace troupe {

// The longest header that the format allows, in bytes.
inline constexpr int64_t kSafetensorsHeaderBytesMax = 100'000'000;

// In files that we write, the data begin at a multiple of this number of bytes, so that direct I/O
// can read and write them.
inline constexpr int64_t kSafetensorsAlignment = 4096;

struct SafetensorsEntry {
  std::string name;
  std::string dtype;
  Extents shape;
  int64_t begin = 0;  // within the buffer
  int64_t end = 0;
  bool operator==(const SafetensorsEntry&) const = default;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // in the order of their data, which fill the buffer
  std::map<std::string, std::string> metadata;
  int64_t buffer_offset = 0;  // offset of the buffer in the file: 8 + N
};

// Parses the JSON text of a header for a buffer of `buffer_bytes` bytes. INVALID_ARGUMENT names
// tensor and value.
StatusOr<SafetensorsHeader> ParseSafetensorsJson(std::string_view json, int64_t buffer_bytes);

// Reads and parses the header of an open file. Error messages do not name the file.
StatusOr<SafetensorsHeader> ReadSafetensorsHeader(const ReadableFile& file);

// Sorts `entries` in the order of the reference implementation (dtype, then name), sets their begin
// and end, and returns the bytes before the buffer, padded so that the buffer begins at a multiple
// of `alignment`. INVALID_ARGUMENT for two entries of one name, a shape without a valid size, or a
// header above the limit.
StatusOr<std::string> LayOutSafetensors(std::vector<SafetensorsEntry>& entries,
                                        const std::map<std::string, std::string>& metadata,
                                        int64_t alignment = kSafetensorsAlignment);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_FORMAT_SAFETENSORS_H_
