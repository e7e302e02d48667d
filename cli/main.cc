// The `troupe` command: data on stdout, messages on stderr, exit codes of cli/exit_code.h.
#include <fmt/format.h>

#include <algorithm>

#include "base/flag_parser.h"
#include "base/program/program.h"
#include "base/security/grpc_log.h"
#include "cli/commands.h"
#include "cli/output/error_lines.h"

namespace troupe {
namespace {

std::vector<Command> AllCommands() {
  std::vector<Command> commands;
  for (auto list : {ClusterCommands, JobCommands, MeasureCommands, PlanCommands, KeyCommands,
                    DataCommands, CheckpointCommands, CatalogCommands, InteropCommands,
                    CertsCommands, JoinCommands, TokensCommands, AuditCommands}) {
    for (Command& command : list()) commands.push_back(std::move(command));
  }
  return commands;
}

std::string Overview(const std::vector<Command>& commands) {
  return "usage: troupe COMMAND …\n\n" + CommandTable(commands) +
         "\ntroupe COMMAND --help prints the flags of a command, troupe --version the version. "
         "With "
         "-o json,\nthe result is JSON on standard output; an error is always a sentence on "
         "standard error.\n\n"
         "Exit codes: 0 done, 1 the job or check failed, the command cannot be done now, or\n"
         "standard output cannot be written,\n"
         "2 usage or bad input (also a file or folder that is missing or cannot be used),\n"
         "3 the coordinator cannot be reached or accepts neither certificate nor token of this "
         "command,\n"
         "4 it knows no such job, worker or checkpoint, 130 interrupted.\n";
}

// Returns the command of two words, else the one of one word, with which `arguments` begin; null if
// there is none. REQUIRES: `arguments` is not empty.
const Command* FindCommand(const std::vector<std::string>& arguments,
                           const std::vector<Command>& commands) {
  const auto named = [&commands](const std::string& name) -> const Command* {
    const auto found =
        std::find_if(commands.begin(), commands.end(),
                     [&name](const Command& command) { return command.name == name; });
    return found == commands.end() ? nullptr : &*found;
  };
  const Command* const two_words =
      arguments.size() < 2 ? nullptr : named(arguments[0] + " " + arguments[1]);
  return two_words != nullptr ? two_words : named(arguments[0]);
}

// Returns the help lines of the two-word commands that begin with `word`; empty if there are none.
std::string CommandsWith(const std::string& word, const std::vector<Command>& commands) {
  std::vector<Command> found;
  for (const Command& command : commands) {
    if (command.name.starts_with(word + " ")) found.push_back(command);
  }
  return CommandTable(found);
}

ExitCode Fail(const Status& status) {
  PrintMessage("troupe: {}\n", Lines{ErrorLines(status)});
  return ExitCodeOf(status);
}

ExitCode Run(const std::vector<std::string>& arguments) {
  DropGrpcRecords();
  const std::vector<Command> commands = AllCommands();
  if (arguments.empty()) {
    PrintMessage("{}", Lines{Overview(commands)});
    return ExitCode::kUsage;
  }
  if (arguments[0] == "help" || arguments[0] == "--help" || arguments[0] == "-h") {
    PrintOutput("{}", Lines{Overview(commands)});
    return ExitCode::kDone;
  }
  if (arguments[0] == "--version") {
    PrintOutput("troupe {}\n", kVersion);
    return ExitCode::kDone;
  }
  if (const Command* const command = FindCommand(arguments, commands)) {
    const int words = command->name.find(' ') != std::string::npos ? 2 : 1;
    const auto line = command->Parse({arguments.begin() + words, arguments.end()});
    if (!line.ok()) return Fail(line.status());
    if (line->help().has_value()) {
      PrintOutput("{}", Lines{*line->help()});
      return ExitCode::kDone;
    }
    const auto code = command->run(*line);
    return code.ok() ? *code : Fail(code.status());
  }
  if (const std::string with = CommandsWith(arguments[0], commands); !with.empty()) {
    const std::string typed =
        arguments.size() < 2 ? arguments[0] : arguments[0] + " " + arguments[1];
    const bool help = arguments.size() > 1 && (arguments[1] == "--help" || arguments[1] == "-h");
    if (help) {
      PrintOutput("usage: troupe {} COMMAND …\n\n{}", arguments[0], Lines{with});
      return ExitCode::kDone;
    }
    PrintMessage("troupe: {}: there is no such command; the commands of {} are\n\n{}", typed,
                 arguments[0], Lines{with});
    return ExitCode::kUsage;
  }
  PrintMessage("troupe: {}: there is no such command\n\n{}", arguments[0],
               Lines{Overview(commands)});
  return ExitCode::kUsage;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  return troupe::RunProgram("troupe", [&] {
    return static_cast<int>(troupe::Run({argv + 1, argv + argc}));
  });
}
