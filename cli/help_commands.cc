// The commands completion and man, which are made of the lists of all commands.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/program/program.h"
#include "cli/command_lookup.h"
#include "cli/commands.h"
#include "cli/help/bash_completion.h"
#include "cli/help/fish_completion.h"
#include "cli/help/manual.h"
#include "cli/help/zsh_completion.h"

namespace troupe {
namespace {

std::vector<DocumentedCommand> DocumentedCommands() {
  std::vector<DocumentedCommand> documented;
  for (const Command& command : AllCommands()) {
    documented.push_back(
        {command.name, command.positionals, command.summary, command.ShownFlags()});
  }
  return documented;
}

Status RefuseJson(const CommandLine& line) {
  if (line.wants_json()) return InvalidArgument("-o json: the output has a form of its own");
  return OkStatus();
}

StatusOr<ExitCode> PrintCompletion(const CommandLine& line) {
  TROUPE_RETURN_IF_ERROR(RefuseJson(line));
  const std::string& shell = line.positional()[0];
  using Make = std::string (*)(const std::vector<DocumentedCommand>&);
  constexpr std::pair<std::string_view, Make> kShells[] = {
      {"bash", BashCompletion}, {"zsh", ZshCompletion}, {"fish", FishCompletion}};
  for (const auto& [name, make] : kShells) {
    if (shell != name) continue;
    PrintOutput("{}", Lines{make(DocumentedCommands())});
    return ExitCode::kDone;
  }
  return InvalidArgument("\"{}\" is not bash, zsh or fish", shell);
}

std::string ManualOfAll() {
  ManualContent content{.version = kVersion, .commands = DocumentedCommands()};
  // A command without flags of its own has those of all, or of all that call the coordinator.
  content.flags_of_all = Command{.cluster = ClusterUse::kNone}.ShownFlags();
  content.flags_of_coordinator = Command{.cluster = ClusterUse::kCoordinator}.ShownFlags();
  std::erase_if(content.flags_of_coordinator, [&](const Flag& flag) {
    return std::ranges::find(content.flags_of_all, flag.name, &Flag::name) !=
           content.flags_of_all.end();
  });
  for (const auto& [code, meaning] : kExitCodeMeanings)
    content.exit_codes.emplace_back(static_cast<int>(code), meaning);
  return TroupeManual(content);
}

StatusOr<ExitCode> PrintManual(const CommandLine& line) {
  TROUPE_RETURN_IF_ERROR(RefuseJson(line));
  const std::vector<std::string>& words = line.positional();
  if (words.empty()) {
    PrintOutput("{}", Lines{ManualOfAll()});
    return ExitCode::kDone;
  }
  const std::vector<Command> commands = AllCommands();
  const Command* const command = FindCommand(words, commands);
  const std::string name = fmt::format("{}", fmt::join(words, " "));
  if (command == nullptr || command->name != name) {
    return InvalidArgument("\"{}\" is no command; `troupe help` lists the commands", name);
  }
  PrintOutput("{}", Lines{command->Manual()});
  return ExitCode::kDone;
}

}  // namespace

std::vector<Command> HelpCommands() {
  return {
      {.name = "completion",
       .positionals = "bash|zsh|fish",
       .least_positionals = 1,
       .most_positionals = 1,
       .summary = "Prints a script with which a shell completes commands and flags. Needs no "
                  "cluster.",
       .cluster = ClusterUse::kNone,
       .run = PrintCompletion},
      {.name = "man",
       .positionals = "[COMMAND]",
       .most_positionals = 2,
       .summary = "Prints the manual page of troupe, or of a command, in roff: troupe man | man -l "
                  "-. Needs no cluster.",
       .cluster = ClusterUse::kNone,
       .run = PrintManual},
  };
}

}  // namespace troupe
