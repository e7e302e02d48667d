// The script with which fish completes the commands, flags and words of `troupe`. Pure.
#ifndef TROUPE_CLI_HELP_FISH_COMPLETION_H_
#define TROUPE_CLI_HELP_FISH_COMPLETION_H_

#include <string>
#include <vector>

#include "cli/help/documented_command.h"

namespace troupe {

// Returns the script, for fish 3 or later. REQUIRES: a command has two words.
std::string FishCompletion(const std::vector<DocumentedCommand>& commands);

}  // namespace troupe

#endif  // TROUPE_CLI_HELP_FISH_COMPLETION_H_
