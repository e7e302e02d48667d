// The file of a plugin, which may be replaced while a process has the plugin loaded.
#ifndef TROUPE_KERNELS_XLA_PJRT_PLUGIN_FILE_H_
#define TROUPE_KERNELS_XLA_PJRT_PLUGIN_FILE_H_

#include <string>

#include "kernels/xla/pjrt/client.h"

namespace troupe::kernels::xla {

// Returns a line that differs if the file is replaced or changed; empty if it cannot be examined.
// The time of the last change of the inode cannot be set.
std::string FileIdentity(const std::string& path);

// Whether the file is no longer the one that was loaded.
inline bool FileWasReplaced(const PluginFacts& plugin) {
  return FileIdentity(plugin.path) != plugin.file;
}

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_PJRT_PLUGIN_FILE_H_
