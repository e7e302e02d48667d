#include "cli/command_lookup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/printable.h"
#include "cli/help/foreign_command.h"
#include "cli/help/nearest_command.h"
#include "cli/help/unknown_flag.h"

namespace troupe {
namespace {

bool IsFollowedByWord(const std::vector<std::string>& arguments) {
  return arguments.size() > 1 && !arguments[1].starts_with('-');
}

const Command* CommandNamed(const std::string& name, const std::vector<Command>& commands) {
  const auto found = std::ranges::find(commands, name, &Command::name);
  return found == commands.end() ? nullptr : &*found;
}

bool HasFlag(const Command& command, const std::string& name) {
  return std::ranges::any_of(command.ShownFlags(),
                             [&](const Flag& flag) { return flag.name == name; });
}

// The message about a flag, `typed`, that precedes every command, where only --version and --help
// may be.
std::string MisplacedFlagText(const std::string& typed, const std::vector<Command>& commands) {
  const std::string first = PrintableLine(typed);
  const std::string name = typed.substr(0, typed.find('='));
  const bool is_known =
      std::ranges::any_of(commands, [&](const Command& command) { return HasFlag(command, name); });
  if (!is_known) {
    const std::string hint = UnknownFlagHint("", name, {"--version", "--help"});
    if (!hint.empty()) return fmt::format("{}: there is no such flag{}\n", first, hint);
  }
  return fmt::format(
      "{0}: a flag follows its command, as in troupe COMMAND {0}; `troupe help` lists the "
      "commands\n",
      first);
}

}  // namespace

const Command* FindCommand(const std::vector<std::string>& arguments,
                           const std::vector<Command>& commands) {
  if (!IsFollowedByWord(arguments)) return CommandNamed(arguments[0], commands);
  if (const auto* of_two = CommandNamed(arguments[0] + " " + arguments[1], commands)) return of_two;
  const Command* const of_one = CommandNamed(arguments[0], commands);
  if (of_one == nullptr || of_one->most_positionals > 0) return of_one;
  return CommandsWith(arguments[0], commands).empty() ? of_one : nullptr;
}

std::string CommandsWith(const std::string& word, const std::vector<Command>& commands) {
  std::vector<Command> found;
  for (const Command& command : commands) {
    if (command.name.starts_with(word + " ")) found.push_back(command);
  }
  return CommandTable(found);
}

std::string UnknownCommandText(const std::vector<std::string>& arguments,
                               const std::vector<Command>& commands) {
  const std::string first = PrintableLine(arguments[0]);
  if (first.starts_with('-')) return MisplacedFlagText(arguments[0], commands);
  const std::string group = CommandsWith(arguments[0], commands);
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (group.empty() || command.name.starts_with(arguments[0] + " "))
      names.push_back(command.name);
  }
  const std::string_view hint = ForeignCommandHint(arguments[0]);
  if (!hint.empty()) return fmt::format("{}: there is no such command; {}\n", first, hint);
  std::vector<std::string> nearest = NearestCommands(arguments, names);
  std::erase(nearest, arguments[0]);
  const bool has_second = !group.empty() && IsFollowedByWord(arguments);
  const std::string typed = has_second ? first + " " + PrintableLine(arguments[1]) : first;
  if (!nearest.empty()) {
    return fmt::format("{}: there is no such command; did you mean `troupe {}`?\n", typed,
                       fmt::join(nearest, "` or `troupe "));
  }
  if (group.empty()) {
    return fmt::format("{}: there is no such command; `troupe help` lists the commands\n", typed);
  }
  return fmt::format("{}: there is no such command; the commands of {} are\n\n{}", typed, first,
                     group);
}

}  // namespace troupe
