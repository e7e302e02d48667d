// The manual page of `troupe`, which describes all commands. Pure.
#ifndef TROUPE_CLI_HELP_MANUAL_H_
#define TROUPE_CLI_HELP_MANUAL_H_

#include <string>
#include <utility>
#include <vector>

#include "cli/help/documented_command.h"

namespace troupe {

struct ManualContent {
  std::string version;
  std::vector<DocumentedCommand> commands;
  // Flags that are described once, and not again with each command that has them.
  std::vector<Flag> flags_of_all;
  std::vector<Flag> flags_of_coordinator;
  std::vector<std::pair<int, std::string>> exit_codes;  // with their meanings
};

// Returns the page, in roff.
std::string TroupeManual(const ManualContent& content);

}  // namespace troupe

#endif  // TROUPE_CLI_HELP_MANUAL_H_
