// Finds the commands that a user may have meant. Pure.
#ifndef TROUPE_CLI_HELP_NEAREST_COMMAND_H_
#define TROUPE_CLI_HELP_NEAREST_COMMAND_H_

#include <string>
#include <vector>

namespace troupe {

// Returns the names among `names`, of one word or two, that are nearest to the words with which
// `arguments` begin. A name of two words may be near by its second one alone, unless another name
// is as near as a whole. If none is near, returns the nearest first words of names. Words are near
// if at most one letter in three differs, or one letter. REQUIRES: `arguments` is not empty.
std::vector<std::string> NearestCommands(const std::vector<std::string>& arguments,
                                         const std::vector<std::string>& names);

}  // namespace troupe

#endif  // TROUPE_CLI_HELP_NEAREST_COMMAND_H_
