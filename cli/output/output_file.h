// The files that --output and --html name.
#ifndef TROUPE_CLI_OUTPUT_OUTPUT_FILE_H_
#define TROUPE_CLI_OUTPUT_OUTPUT_FILE_H_

#include <string>
#include <string_view>

#include "base/file_system.h"
#include "base/status.h"

namespace troupe {

// INVALID_ARGUMENT, with `flag`, if its value `path` names a folder, one that exists or any with a
// slash at its end. Reads the file system. An error of it is left to WriteOutputFile.
Status CheckNamesFile(FileSystem& files, std::string_view flag, const std::string& path);

// Writes all of `text` to `path`. A regular file is replaced atomically and durably: after an error
// it is the former file, and nothing of the new one is left. Several processes may replace the same
// file at a time. A link is followed, and it, a device and a FIFO stay what they are: the text is
// written into them. INVALID_ARGUMENT if `path` is empty.
Status WriteOutputFile(FileSystem& files, const std::string& path, std::string_view text);

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_OUTPUT_FILE_H_
