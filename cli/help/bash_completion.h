// The script with which bash completes the commands, flags and words of `troupe`. Pure.
#ifndef TROUPE_CLI_HELP_BASH_COMPLETION_H_
#define TROUPE_CLI_HELP_BASH_COMPLETION_H_

#include <string>
#include <vector>

#include "cli/help/documented_command.h"

namespace troupe {

// Returns the script, for bash 4 or later. REQUIRES: a command has two words.
std::string BashCompletion(const std::vector<DocumentedCommand>& commands);

}  // namespace troupe

#endif  // TROUPE_CLI_HELP_BASH_COMPLETION_H_
