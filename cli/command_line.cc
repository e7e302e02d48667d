#include "cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <type_traits>
#include <variant>

#include "base/text/wrapped.h"
#include "cli/help/unknown_flag.h"

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
  parser->AddParsed(ToFlag(flag), [&flag, value](const std::string& text) -> Status {
    if (text.empty() && NamesPath(flag.value)) return InvalidArgument("{} is empty", flag.name);
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
  return {.name = "troupe " + command.name,
          .usage = Usage(command),
          .summary = command.summary,
          .unknown_flag_hint = [&command](const std::string& flag) {
            std::vector<std::string> names;
            for (const Flag& known : command.ShownFlags()) names.push_back(known.name);
            return UnknownFlagHint(command.name, flag, names);
          }};
}

// Returns the name that the usage has for the argument with this index: "JOB"; the last name is
// that of all further ones.
std::string ArgumentName(const Command& command, size_t index) {
  std::istringstream words(command.positionals);
  std::string name, last;
  for (size_t i = 0; i <= index && words >> name; ++i) last = name;
  return last;
}

// INVALID_ARGUMENT if an argument is empty that the usage does not have in brackets.
Status CheckArguments(const Command& command, const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string name = ArgumentName(command, i);
    if (!arguments[i].empty() || name.starts_with('[')) continue;
    return InvalidArgument("argument {}, {}, is empty", i + 1, name);
  }
  return OkStatus();
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
    ignored.value = "VALUE";  // no path that could be refused
    if (!Lists(*this, ignored))
      parser->AddParsed(ignored, [](const std::string&) { return OkStatus(); });
  }
}

StatusOr<CommandLine> Command::Parse(const std::vector<std::string>& arguments) const {
  CommandLine line;
  FlagParser parser(ProgramOf(*this));
  Declare(&parser, &line);
  TROUPE_RETURN_IF_ERROR(parser.Parse(arguments));
  if (parser.wants_help()) {
    line.help_ = parser.Help();
  } else {
    TROUPE_RETURN_IF_ERROR(CheckArguments(*this, line.positional_));
  }
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
    text += WrappedBehind(fmt::format("  {:<{}} ", command.name, columns), command.summary,
                          kHelpColumns) +
            "\n";
  }
  return text;
}

}  // namespace troupe
