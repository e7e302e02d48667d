// Paths as people read them: those below a directory, such as the working directory, are relative
// to it. JSON has whole paths. Pure.
#ifndef TROUPE_CLI_OUTPUT_RELATIVE_PATH_H_
#define TROUPE_CLI_OUTPUT_RELATIVE_PATH_H_

#include <string>
#include <string_view>

namespace troupe {

// Returns `path` relative to the absolute path `directory` if it is below it, else `path`; with an
// empty `directory` also `path`. A relative path that a command would take for something else, such
// as jobs/x or -x, begins with "./".
std::string RelativePath(std::string_view path, std::string_view directory);

// Returns `text` with every path in it that begins a word, or follows a quote, a bracket or "=", as
// RelativePath does.
std::string WithRelativePaths(std::string_view text, std::string_view directory);

}  // namespace troupe

#endif  // TROUPE_CLI_OUTPUT_RELATIVE_PATH_H_
