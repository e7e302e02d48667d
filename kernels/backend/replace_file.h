// Replaces a file that several processes may write at once.
#ifndef TROUPE_KERNELS_BACKEND_REPLACE_FILE_H_
#define TROUPE_KERNELS_BACKEND_REPLACE_FILE_H_

#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe::kernels {

// Replaces `path` durably (base/durable_write.h): a reader sees the old file or the new one. The
// name of the temporary file, which no other process has, begins with that of `path`. After an
// error it is removed.
Status ReplaceFile(FileSystem& files, const std::string& path, std::string_view bytes);

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_REPLACE_FILE_H_
