// Paths that begin with "~", which a shell replaces by the home directory only at the start of a
// word, so not in a file, behind "=" or in quotes. Pure.
#ifndef TROUPE_BASE_TEXT_HOME_PATH_H_
#define TROUPE_BASE_TEXT_HOME_PATH_H_

#include <string>
#include <string_view>

namespace troupe {

// Returns why `path` is refused, "is ~/x: write the absolute path; …", if it is "~" or begins with
// "~/"; else an empty text.
std::string HomePathFault(std::string_view path);

}  // namespace troupe

#endif  // TROUPE_BASE_TEXT_HOME_PATH_H_
