// The file of a plugin, which may be replaced while a process has the plugin loaded.
#ifndef TROUPE_KERNELS_XLA_PJRT_PLUGIN_FILE_H_
#define TROUPE_KERNELS_XLA_PJRT_PLUGIN_FILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "kernels/xla/pjrt/client.h"

namespace troupe::kernels::xla {

// Returns a line that differs if the file is replaced or changed; empty if it cannot be examined.
// The time of the last change of the inode cannot be set.
std::string FileIdentity(const std::string& path);

// Returns OK if the library that begins with `start` and has `file_bytes` bytes in all has what its
// ELF header and those segments that `start` describes promise. The loader maps a shorter file
// without an error, and the process then dies by SIGBUS. FAILED_PRECONDITION states both sizes.
// A file that begins with no 64-bit ELF header is OK: the loader refuses it. Pure.
Status CheckElfIsWhole(std::span<const std::byte> start, uint64_t file_bytes);

// Checks the file at `path` in this way. OK also if it cannot be read: the loader reports why.
Status CheckFileIsWhole(const std::string& path);

// Whether the file is no longer the one that was loaded.
inline bool FileWasReplaced(const PluginFacts& plugin) {
  return FileIdentity(plugin.path) != plugin.file;
}

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_PLUGIN_FILE_H_
