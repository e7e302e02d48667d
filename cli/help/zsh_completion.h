// The script with which zsh completes the commands, flags and words of `troupe`. Pure.
#ifndef TROUPE_CLI_HELP_ZSH_COMPLETION_H_
#define TROUPE_CLI_HELP_ZSH_COMPLETION_H_

#include <string>
#include <vector>

#include "cli/help/documented_command.h"

namespace troupe {

// Returns the script, which zsh may source, or load as the file _troupe of its fpath.
std::string ZshCompletion(const std::vector<DocumentedCommand>& commands);

}  // namespace troupe

#endif  // TROUPE_CLI_HELP_ZSH_COMPLETION_H_
