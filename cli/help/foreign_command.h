// Commands of other tools, and what does the same here. Pure.
#ifndef TROUPE_CLI_HELP_FOREIGN_COMMAND_H_
#define TROUPE_CLI_HELP_FOREIGN_COMMAND_H_

#include <span>
#include <string_view>

namespace troupe {

struct ForeignCommand {
  std::string_view name;  // one word
  std::string_view hint;  // "`troupe list` shows the jobs"
};

// The table.
std::span<const ForeignCommand> ForeignCommands();

// Returns the hint for a first word that is no command here; empty if the table does not have it.
std::string_view ForeignCommandHint(std::string_view word);

}  // namespace troupe

#endif  // TROUPE_CLI_HELP_FOREIGN_COMMAND_H_
