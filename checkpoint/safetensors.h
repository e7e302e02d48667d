// The safetensors format (huggingface/safetensors): `u64 N | N bytes of JSON | buffer`.
//
// The parser believes nothing: it refuses lengths beyond the file, duplicate names, unknown dtypes
// and keys, numbers that do not fit, and buffers with holes or overlaps; memory use is bounded by
// the header's own length.
#ifndef TROUPE_CHECKPOINT_SAFETENSORS_H_
#define TROUPE_CHECKPOINT_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/status.h"
#include "checkpoint/slice.h"

namespace troupe {

// Longest header that the format allows.
inline constexpr int64_t kSafetensorsHeaderBytesMax = 100'000'000;

// The data of files that we write begin at a multiple of this, so that they can be read and written
// unbuffered.
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
  int64_t buffer_offset = 0;  // of the buffer within the file: 8 + N
};

// Parses the JSON text of a header whose buffer has `buffer_bytes`. INVALID_ARGUMENT naming tensor
// and value.
StatusOr<SafetensorsHeader> ParseSafetensorsJson(std::string_view json, int64_t buffer_bytes);

// Reads and parses the header of an open file; the message of an error does not name the file.
StatusOr<SafetensorsHeader> ReadSafetensorsHeader(const ReadableFile& file);

// Puts `entries` in the reference writer's order (dtype, then name), sets their begin and end, and
// returns the bytes that go before the buffer, padded so that the buffer begins at a multiple of
// `alignment`. INVALID_ARGUMENT for two entries of one name, a shape that has no size, or a header
// above the limit.
StatusOr<std::string> LayOutSafetensors(std::vector<SafetensorsEntry>& entries,
                                        const std::map<std::string, std::string>& metadata,
                                        int64_t alignment = kSafetensorsAlignment);

}  // namespace troupe

#endif  // TROUPE_CHECKPOINT_SAFETENSORS_H_
