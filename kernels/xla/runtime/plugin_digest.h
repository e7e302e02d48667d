// The digest of a plugin's file, for the keys of what the plugin compiled.
#ifndef TROUPE_KERNELS_XLA_RUNTIME_PLUGIN_DIGEST_H_
#define TROUPE_KERNELS_XLA_RUNTIME_PLUGIN_DIGEST_H_

#include <string>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe::kernels::xla {

// Returns the SHA-256 of the file at `path` as 64 hexadecimal digits. Reading a plugin of 260 MB
// takes a quarter of a second, which would be most of the time in which a rank starts again, so the
// digest is kept in a small file of `folder`, together with the inode, the size and the times of
// change of the plugin's file; if one of them differs, the plugin is read. The small file is
// optional: if it cannot be read or written, the plugin is read. Errors: those of reading the
// plugin. Several threads and processes may call it for the same folder at once.
StatusOr<std::string> PluginDigest(FileSystem& files, const std::string& path,
                                   const std::string& folder);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_RUNTIME_PLUGIN_DIGEST_H_
