#include "cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <variant>

namespace troupe {
namespace {

std::vector<AnyFlag> ClusterFlags(ClusterUse use) {
  switch (use) {
    case ClusterUse::kCoordinator:
      return {&kCoordinatorFlag, &kLocalClusterFlag, &kTlsDirFlag, &kTokenFileFlag};
    case ClusterUse::kFolder:
      return {&kDataDirFlag};
    case ClusterUse::kNone:
      return {};
  }
  return {};
}

template <typename Value>
Flag ToFlag(const CommandFlag<Value>& flag) {
  constexpr bool kRepeated = std::is_same_v<CommandFlag<Value>, RepeatedFlag>;
  return {flag.name, flag.value, flag.help, kRepeated, flag.required};
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

// The required flags come first.
std::string Usage(const Command& command, const std::vector<AnyFlag>& flags) {
  std::string required, optional;
  for (const AnyFlag& any : flags) {
    const Flag flag = std::visit([](const auto* listed) { return ToFlag(*listed); }, any);
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

}  // namespace

StatusOr<CommandLine> Command::Parse(const std::vector<std::string>& arguments) const {
  CommandLine line;
  std::vector<AnyFlag> all = flags;
  for (const AnyFlag& flag : ClusterFlags(cluster)) all.push_back(flag);
  FlagParser parser({.name = "troupe " + name, .usage = Usage(*this, all), .summary = summary});
  for (const AnyFlag& any : all) {
    std::visit([&](const auto* flag) { Declare(*flag, line.Add(*flag), &parser); }, any);
  }
  parser.AddWord({"-o", "FORMAT", "format of the output, json or text"}, {"json", "text"},
                 &line.format_);
  parser.AddArguments(least_positionals, most_positionals, &line.positional_);
  TROUPE_RETURN_IF_ERROR(parser.Parse(arguments));
  if (parser.wants_help()) line.help_ = parser.Help();
  return line;
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
