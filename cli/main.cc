// The `troupe` command: data on stdout, messages on stderr, exit codes of cli/exit_code.h.
#include <fmt/format.h>

#include "base/flag_parser.h"
#include "base/program/program.h"
#include "base/security/grpc_log.h"
#include "cli/command_lookup.h"
#include "cli/commands.h"
#include "cli/output/error_lines.h"

namespace troupe {
namespace {

std::string Overview(const std::vector<Command>& commands) {
  std::string text = "usage: troupe COMMAND …\n\n" + CommandTable(commands) +
                     "\ntroupe COMMAND --help prints the flags of a command, troupe man the "
                     "manual,\ntroupe --version the version. With -o json the result is JSON on "
                     "standard\noutput; an error is always a sentence on standard error.\n"
                     "\nExit codes:\n";
  for (const auto& [code, meaning] : kExitCodeMeanings)
    text += fmt::format("  {:<4} {}\n", static_cast<int>(code), meaning);
  return text;
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
  const std::string with = CommandsWith(arguments[0], commands);
  const bool wants_help =
      arguments.size() > 1 && (arguments[1] == "--help" || arguments[1] == "-h");
  if (wants_help && !with.empty()) {
    PrintOutput("usage: troupe {} COMMAND …\n\n{}", arguments[0], Lines{with});
    return ExitCode::kDone;
  }
  PrintMessage("troupe: {}", Lines{UnknownCommandText(arguments, commands)});
  return ExitCode::kUsage;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  return troupe::RunProgram("troupe", [&] {
    return static_cast<int>(troupe::Run({argv + 1, argv + argc}));
  });
}
