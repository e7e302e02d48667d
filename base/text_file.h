// Reads a whole small file, also one of /proc, whose size is not known before it is read, and
// writes small texts.
#ifndef TROUPE_BASE_TEXT_FILE_H_
#define TROUPE_BASE_TEXT_FILE_H_

#include <string>
#include <string_view>

#include "base/status.h"

namespace troupe {

// Returns the content of the file at `path`. NOT_FOUND where it cannot be opened, UNAVAILABLE where
// a read fails: a file of /proc, for one, whose process ends meanwhile. Thread-safe.
StatusOr<std::string> ReadTextFile(const std::string& path);

// Writes all of `text` at the position of the open file `descriptor`; `name` names the file in the
// error. After an error a part may be written. Thread-safe.
Status WriteText(int descriptor, std::string_view text, std::string_view name);

}  // namespace troupe

#endif  // TROUPE_BASE_TEXT_FILE_H_
