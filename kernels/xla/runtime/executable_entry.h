// The file of one compiled program in a cache:
//
//   8 bytes   "TROUPEXE"
//   4 bytes   version of this format, little-endian
//   64 bytes  key (executable_key.h)
//   8 bytes   length of the plugin's bytes, little-endian
//   32 bytes  SHA-256 of all other bytes of the file
//   …         the plugin's bytes
//
// Pure.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_EXECUTABLE_ENTRY_H_
#define TROUPE_KERNELS_XLA_RUNTIME_EXECUTABLE_ENTRY_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe::kernels::xla {

inline constexpr uint32_t kEntryVersion = 1;
inline constexpr size_t kEntryKeyBytes = 64;
inline constexpr size_t kEntryHeaderBytes = 8 + 4 + kEntryKeyBytes + 8 + 32;

// Returns the file's bytes. REQUIRES: `key` has kEntryKeyBytes bytes.
std::string EncodeEntry(std::string_view key, std::string_view plugin_bytes);

// Returns the plugin's bytes, a part of `file`. INVALID_ARGUMENT, with what is wrong in few words
// that are the same for all files ("is truncated"), if the file is not what EncodeEntry returned
// for `key`.
StatusOr<std::string_view> DecodeEntry(std::string_view key, std::string_view file);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_EXECUTABLE_ENTRY_H_
