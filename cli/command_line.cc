#include "cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <type_traits>
#include <variant>

namespace troupe {
namespace {

std::vector<std::string> WordsOf(std::string text) {
  std::ranges::replace(text, ',', ' ');
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

template <typename Value>
Flag ToFlag(const CommandFlag<Value>& flag) {
  constexpr bool kRepeated = std::is_same_v<CommandFlag<Value>, RepeatedFlag>;
  return {flag.name, flag.value, flag.help, kRepeated, flag.required, WordsOf(flag.words)};
}

Flag ToFlag(const AnyFlag& any) {
  return std::visit([](const auto* listed) { return ToFlag(*listed); }, any);
}

// Each of these declares a flag that sets `value`.
void Declare(const SwitchFlag& flag, bool* value, FlagParser* parser) {
  parser->AddSwitch(ToFlag(flag), value);
}

void Declare(const TextFlag& flag, std::optional<std::string>* value, FlagParser* parser) {
  parser->AddParsed(ToFlag(flag), [value](const std::string& text) {
    *value = text;
    return OkStatus();
  });
}

void Declare(const RepeatedFlag& flag, std::vector<std::string>* value, FlagParser* parser) {
  parser->AddParsed(ToFlag(flag), [value](const std::string& text) {
    value->push_back(text);
    return OkStatus();
  });
}

template <typename Number>
void Declare(const NumberFlag<Number>& flag, std::optional<Number>* value, FlagParser* parser) {
  parser->AddOptionalNumber(ToFlag(flag), flag.range, value);
}

std::vector<AnyFlag> ListedFlags(const Command& command) {
  std::vector<AnyFlag> listed = command.flags;
  if (command.cluster != ClusterUse::kCoordinator) return listed;
  for (const AnyFlag& flag : CoordinatorFlags()) listed.push_back(flag);
  return listed;
}

// The required flags come first.
std::string Usage(const Command& command) {
  std::string required, optional;
  for (const AnyFlag& any : ListedFlags(command)) {
    const Flag flag = ToFlag(any);
    const std::string text =
        fmt::format("{}{}{}", flag.name, flag.value.empty() ? "" : " ", flag.value);
    if (flag.required) {
      required += " " + text;
    } else {
      optional += fmt::format(" [{}]{}", text, flag.repeated ? "…" : "");
    }
  }
  return "troupe " + command.name + required + optional +
         (command.positionals.empty() ? "" : " " + command.positionals);
}

FlagParser::Program ProgramOf(const Command& command) {
  return {.name = "troupe " + command.name, .usage = Usage(command), .summary = command.summary};
}

bool Lists(const Command& command, const Flag& flag) {
  return std::ranges::any_of(command.flags,
                             [&](const AnyFlag& any) { return ToFlag(any).name == flag.name; });
}

}  // namespace

std::vector<AnyFlag> CoordinatorFlags() {
  return {&kCoordinatorFlag, &kLocalClusterFlag, &kTlsDirFlag, &kTokenFileFlag};
}

void Command::Declare(FlagParser* parser, CommandLine* line) const {
  for (const AnyFlag& any : ListedFlags(*this)) {
    std::visit([&](const auto* flag) { troupe::Declare(*flag, line->Add(*flag), parser); }, any);
  }
  parser->AddWord({"-o", "FORMAT", "format of the output, json or text"}, {"json", "text"},
                  &line->format_);
  parser->AddArguments(least_positionals, most_positionals, &line->positional_);
  if (cluster != ClusterUse::kNone) return;
  for (const AnyFlag& any : CoordinatorFlags()) {
    Flag ignored = ToFlag(any);
    ignored.help.clear();
    if (!Lists(*this, ignored))
      parser->AddParsed(ignored, [](const std::string&) { return OkStatus(); });
  }
}

StatusOr<CommandLine> Command::Parse(const std::vector<std::string>& arguments) const {
  CommandLine line;
  FlagParser parser(ProgramOf(*this));
  Declare(&parser, &line);
  TROUPE_RETURN_IF_ERROR(parser.Parse(arguments));
  if (parser.wants_help()) line.help_ = parser.Help();
  return line;
}

std::vector<Flag> Command::ShownFlags() const {
  CommandLine line;
  FlagParser parser(ProgramOf(*this));
  Declare(&parser, &line);
  std::vector<Flag> shown = parser.flags();
  std::erase_if(shown, [](const Flag& flag) { return flag.help.empty(); });
  return shown;
}

std::string Command::Manual() const {
  CommandLine line;
  FlagParser parser(ProgramOf(*this));
  Declare(&parser, &line);
  return parser.Manual();
}

std::string CommandTable(const std::vector<Command>& commands) {
  size_t columns = 0;
  for (const Command& command : commands) columns = std::max(columns, command.name.size());
  std::string text;
  for (const Command& command : commands) {
    text += fmt::format("  {:<{}} {}\n", command.name, columns, command.summary);
  }
  return text;
}

}  // namespace troupe
