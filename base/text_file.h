// Reads a whole small file, also one of /proc, whose size is not known before it is read, writes
// small texts, and recognizes the text that Git LFS leaves in place of a file.
#ifndef TROUPE_BASE_TEXT_FILE_H_
#define TROUPE_BASE_TEXT_FILE_H_

#include <cstddef>
#include <span>
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

// Whether a file that begins with `text` is a pointer of Git LFS. A clone without Git LFS has such
// texts instead of weights or data.
inline constexpr std::string_view kGitLfsPointerBegin = "version https://git-lfs.github.com/spec/";
inline bool IsGitLfsPointer(std::string_view text) { return text.starts_with(kGitLfsPointerBegin); }
inline bool IsGitLfsPointer(std::span<const std::byte> bytes) {
  return IsGitLfsPointer(
      std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

// The error for such a file, whose path the caller adds.
Status GitLfsPointerFault();

}  // namespace troupe

#endif  // TROUPE_BASE_TEXT_FILE_H_
