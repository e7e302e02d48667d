// The texts of `troupe help` and `troupe help COMMAND`. Pure.
#ifndef TROUPE_CLI_HELP_TEXT_H_
#define TROUPE_CLI_HELP_TEXT_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"

namespace troupe {

// Returns the help of the command that `words` name, such as {"checkpoints", "list"}, or the
// commands that begin with the only word; for no words the list of all commands. Nothing if there
// is no such command. Lines have at most kHelpColumns.
std::optional<std::string> HelpText(const std::vector<std::string>& words,
                                    const std::vector<Command>& commands);

}  // namespace troupe

#endif  // TROUPE_CLI_HELP_TEXT_H_
