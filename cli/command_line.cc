#include "cli/command_line.h"

#include <fmt/format.h>

#include <utility>

namespace troupe {
namespace {

std::vector<Flag> ClusterFlags(ClusterUse use) {
  switch (use) {
    case ClusterUse::kCoordinator:
      return {{"--coordinator", "HOST:PORT",
               "the coordinator (default: TROUPE_COORDINATOR, else the newest local cluster)"},
              {"--data-dir", "DIR", "the coordinator of the local cluster in DIR (`troupe up`)"}};
    case ClusterUse::kFolder:
      return {{.name = "--data-dir",
               .value = "DIR",
               .help = "folder of the local cluster",
               .required = true}};
    case ClusterUse::kNone:
      return {};
  }
  return {};
}

// The required flags come first.
std::string Usage(const Command& command, const std::vector<Flag>& flags) {
  std::string required, optional;
  for (const Flag& flag : flags) {
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

std::optional<std::string> CommandLine::Get(const std::string& flag) const {
  const auto entry = flags_.find(flag);
  if (entry == flags_.end()) return std::nullopt;
  return entry->second.back();
}

std::string CommandLine::GetOr(const std::string& flag, const std::string& otherwise) const {
  return Get(flag).value_or(otherwise);
}

std::vector<std::string> CommandLine::GetAll(const std::string& flag) const {
  const auto entry = flags_.find(flag);
  return entry == flags_.end() ? std::vector<std::string>() : entry->second;
}

StatusOr<int64_t> CommandLine::Integer(const std::string& flag, int64_t otherwise, int64_t least,
                                       int64_t most) const {
  const auto text = Get(flag);
  if (!text.has_value()) return otherwise;
  return ParseNumber<int64_t>(flag, *text, {least, most});
}

StatusOr<double> CommandLine::Number(const std::string& flag, double otherwise,
                                     NumberRange<double> range) const {
  const auto text = Get(flag);
  if (!text.has_value()) return otherwise;
  return ParseNumber<double>(flag, *text, range);
}

StatusOr<CommandLine> Command::Parse(const std::vector<std::string>& arguments) const {
  CommandLine line;
  std::vector<Flag> all = flags;
  for (Flag& flag : ClusterFlags(cluster)) all.push_back(std::move(flag));
  FlagParser parser({.name = "troupe " + name, .usage = Usage(*this, all), .summary = summary});
  for (const Flag& flag : all) {
    parser.AddParsed(flag, [&line, name = flag.name](const std::string& value) {
      line.flags_[name].push_back(value);
      return OkStatus();
    });
  }
  std::string format = "text";
  parser.AddWord({"-o", "FORMAT", "format of the output, json or text"}, {"json", "text"}, &format);
  parser.AddArguments(least_positionals, most_positionals, &line.positional_);
  TROUPE_RETURN_IF_ERROR(parser.Parse(arguments));
  line.flags_["-o"] = {format};
  if (parser.wants_help()) line.help_ = parser.Help();
  return line;
}

}  // namespace troupe
