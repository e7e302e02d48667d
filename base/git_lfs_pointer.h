// Recognizes the short text that Git LFS leaves in place of a file whose content was not fetched. A
// clone without Git LFS has such texts instead of weights.
#ifndef TROUPE_BASE_GIT_LFS_POINTER_H_
#define TROUPE_BASE_GIT_LFS_POINTER_H_

#include <string_view>

#include "base/status.h"

namespace troupe {

inline constexpr std::string_view kGitLfsPointerBegin = "version https://git-lfs.github.com/spec/";

// Whether a file that begins with `text` is a pointer.
inline bool IsGitLfsPointer(std::string_view text) { return text.starts_with(kGitLfsPointerBegin); }

// The error for such a file, whose path the caller adds.
inline Status GitLfsPointerFault() {
  return InvalidArgument(
      "is a Git LFS pointer and not the file that it stands for, which git lfs pull fetches");
}

}  // namespace troupe

#endif  // TROUPE_BASE_GIT_LFS_POINTER_H_
