// Finds the command that the arguments of `troupe` name, and explains why there is none. Pure.
#ifndef TROUPE_CLI_COMMAND_LOOKUP_H_
#define TROUPE_CLI_COMMAND_LOOKUP_H_

#include <string>
#include <vector>

#include "cli/command_line.h"

namespace troupe {

// Returns the command of two words, else the one of one word, with which `arguments` begin; null if
// there is none. A command without arguments that is followed by a word, and begins the names of
// others, is none. REQUIRES: `arguments` is not empty.
const Command* FindCommand(const std::vector<std::string>& arguments,
                           const std::vector<Command>& commands);

// Returns the help lines of the two-word commands that begin with `word`; empty if there are none.
std::string CommandsWith(const std::string& word, const std::vector<Command>& commands);

// Returns the message about arguments that name no command: the commands that may be meant, or
// where they are listed. REQUIRES: FindCommand finds none.
std::string UnknownCommandText(const std::vector<std::string>& arguments,
                               const std::vector<Command>& commands);

}  // namespace troupe

#endif  // TROUPE_CLI_COMMAND_LOOKUP_H_
