// The `troupe` command: data on stdout, messages on stderr, exit codes of cli/exit_code.h.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <vector>

#include "base/flag_parser.h"
#include "base/program/program.h"
#include "base/security/grpc_log.h"
#include "cli/command_lookup.h"
#include "cli/commands.h"
#include "cli/help_text.h"
#include "cli/output/error_lines.h"
#include "cli/output/relative_path.h"
#include "cli/output/text_style.h"

namespace troupe {
namespace {

ExitCode Fail(const Status& status) {
  PrintMessage("troupe: {}\n",
               Lines{WithRelativePaths(ErrorLines(status), WorkingDirectoryOrNone())});
  return ExitCodeOf(status);
}

ExitCode RefuseCommand(const std::vector<std::string>& words,
                       const std::vector<Command>& commands) {
  PrintMessage("troupe: {}", Lines{UnknownCommandText(words, commands)});
  return ExitCode::kUsage;
}

bool AsksForHelp(const std::string& word) { return word == "--help" || word == "-h"; }

ExitCode Help(const std::vector<std::string>& words, const std::vector<Command>& commands) {
  const std::optional<std::string> text = HelpText(words, commands);
  if (text) {
    PrintOutput("{}", Lines{*text});
    return ExitCode::kDone;
  }
  if (FindCommand(words, commands) == nullptr) return RefuseCommand(words, commands);
  PrintMessage("troupe: \"{}\" is no command; `troupe help` lists the commands\n",
               fmt::to_string(fmt::join(words, " ")));
  return ExitCode::kUsage;
}

ExitCode Run(const std::vector<std::string>& arguments) {
  DropGrpcRecords();
  const std::vector<Command> commands = AllCommands();
  if (arguments.empty()) {
    PrintMessage("{}", Lines{*HelpText({}, commands)});
    return ExitCode::kUsage;
  }
  if (AsksForHelp(arguments[0])) return Help({}, commands);
  if (arguments[0] == "help") {
    std::vector<std::string> words(arguments.begin() + 1, arguments.end());
    std::erase_if(words, AsksForHelp);
    return Help(words, commands);
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
  const bool wants_help = arguments.size() > 1 && AsksForHelp(arguments[1]);
  if (wants_help) return Help({arguments[0]}, commands);
  return RefuseCommand(arguments, commands);
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  return troupe::RunProgram("troupe", [&] {
    return static_cast<int>(troupe::Run({argv + 1, argv + argc}));
  });
}
