#include "cli/help_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text/wrapped.h"
#include "cli/command_lookup.h"
#include "cli/exit_code.h"

namespace troupe {
namespace {

std::string Overview(const std::vector<Command>& commands) {
  std::string text = "usage: troupe COMMAND …\n\n" + CommandTable(commands) + "\n" +
                     Wrapped(
                         "troupe COMMAND --help and troupe help COMMAND print the flags of a "
                         "command, troupe man the manual, troupe --version the version. With "
                         "-o json the result is JSON on standard output; an error is always a "
                         "sentence on standard error.",
                         kHelpColumns) +
                     "\n\nExit codes:\n";
  for (const auto& [code, meaning] : kExitCodeMeanings) {
    const std::string prefix = fmt::format("  {:<4} ", static_cast<int>(code));
    text += WrappedBehind(prefix, meaning, kHelpColumns) + "\n";
  }
  return text;
}

}  // namespace

std::optional<std::string> HelpText(const std::vector<std::string>& words,
                                    const std::vector<Command>& commands) {
  if (words.empty()) return Overview(commands);
  const std::string name = fmt::format("{}", fmt::join(words, " "));
  const std::string group = words.size() == 1 ? CommandsWith(name, commands) : "";
  const Command* const command = FindCommand(words, commands);
  if (command == nullptr || command->name != name) {
    if (group.empty()) return std::nullopt;
    return fmt::format("usage: troupe {} COMMAND …\n\n{}", name, group);
  }
  const StatusOr<CommandLine> line = command->Parse({"--help"});
  TROUPE_CHECK_OK(line.status());
  const std::string help = line->help().value_or("");
  return group.empty() ? help : fmt::format("{}\nOther commands of {}:\n{}", help, name, group);
}

}  // namespace troupe
