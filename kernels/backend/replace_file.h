// Replaces a file that several processes may write at once.
#ifndef TROUPE_KERNELS_BACKEND_REPLACE_FILE_H_
#define TROUPE_KERNELS_BACKEND_REPLACE_FILE_H_

#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe::kernels {

// Writes `bytes` to a file of its own next to `path`, whose name begins with that of `path`, syncs
// it and renames it: a reader sees the old file or the new one. After an error the own file is
// removed.
Status ReplaceFile(FileSystem& files, const std::string& path, std::string_view bytes);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_REPLACE_FILE_H_
