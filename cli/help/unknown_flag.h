// Finds the flag that a user may have meant by one that a command does not have. Pure.
#ifndef TROUPE_CLI_HELP_UNKNOWN_FLAG_H_
#define TROUPE_CLI_HELP_UNKNOWN_FLAG_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

// A flag of other tools.
struct ForeignFlag {
  std::string_view name;     // "--follow"
  std::string_view command;  // the command here; empty: any
  std::string_view hint;     // sentence on what to write here
};

// The table; the row of a command precedes that of any.
std::span<const ForeignFlag> ForeignFlags();

// Returns the text to append to the error that `command`, "checkpoints list", has no `flag`: that
// of the table, else "; did you mean --workers?" for the nearest name among `names`, in which
// commas separate spellings; empty if none is near.
std::string UnknownFlagHint(std::string_view command, const std::string& flag,
                            const std::vector<std::string>& names);

}  // namespace troupe

#endif  // TROUPE_CLI_HELP_UNKNOWN_FLAG_H_
