#include "cli/command_line.h"

#include <charconv>
#include <cmath>

namespace troupe {
namespace {

const std::vector<Flag>& CommonFlags() {
  static const auto* flags = new std::vector<Flag>{
      {"--coordinator", "ADDRESS", "the coordinator, HOST:PORT"},
      {"--data-dir", "DIR", "a cluster of `troupe up`; else TROUPE_COORDINATOR names the coordinator"},
      {"-o", "FORMAT", "json or text (the default)"},
      {"--help", "", "this text"},
  };
  return *flags;
}

const Flag* Find(const std::vector<Flag>& flags, const std::string& name) {
  for (const Flag& flag : flags) {
    if (flag.name == name) return &flag;
  }
  return nullptr;
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
  int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || value < least || value > most) {
    return InvalidArgument("{} {}: not a whole number from {} to {}", flag, *text, least, most);
  }
  return value;
}

StatusOr<double> CommandLine::PositiveNumber(const std::string& flag, double otherwise) const {
  const auto text = Get(flag);
  if (!text.has_value()) return otherwise;
  double value = 0;
  const char* end = text->data() + text->size();
  const auto parsed = std::from_chars(text->data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || !std::isfinite(value) || value <= 0) {
    return InvalidArgument("{} {}: not a finite number above 0", flag, *text);
  }
  return value;
}

StatusOr<CommandLine> Command::Parse(const std::vector<std::string>& arguments) const {
  CommandLine line;
  bool flags_ended = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (flags_ended || argument.size() < 2 || argument[0] != '-') {
      line.positional_.push_back(argument);
      continue;
    }
    if (argument == "--") {
      flags_ended = true;
      continue;
    }
    const size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
    const std::string flag_name = argument.substr(0, equals);
    const Flag* flag = Find(flags, flag_name);
    if (flag == nullptr) flag = Find(CommonFlags(), flag_name);
    if (flag == nullptr) {
      return InvalidArgument("{}: unknown flag (see troupe {} --help)", flag_name, name);
    }
    std::string value;
    if (flag->value.empty()) {
      if (equals != std::string::npos) return InvalidArgument("{}: takes no value", flag_name);
    } else if (equals != std::string::npos) {
      value = argument.substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    } else {
      return InvalidArgument("{}: needs a value, {}", flag_name, flag->value);
    }
    auto& values = line.flags_[flag_name];
    if (!values.empty() && !flag->repeated && !flag->value.empty()) {
      return InvalidArgument("{}: given twice, {} and {}", flag_name, values.back(), value);
    }
    values.push_back(value);
  }
  const std::string format = line.GetOr("-o", "text");
  if (format != "json" && format != "text") {
    return InvalidArgument("-o {}: not json or text", format);
  }
  const int count = static_cast<int>(line.positional_.size());
  if (!line.Has("--help") && (count < least_positionals || count > most_positionals)) {
    return InvalidArgument("usage: {}", Usage());
  }
  return line;
}

std::string Command::Usage() const {
  std::string usage = "troupe " + name;
  for (const Flag& flag : flags) {
    usage += fmt::format(" [{}{}{}]{}", flag.name, flag.value.empty() ? "" : " ", flag.value,
                         flag.repeated ? "…" : "");
  }
  if (!positionals.empty()) usage += " " + positionals;
  return usage;
}

std::string Command::Help() const {
  std::string help = fmt::format("usage: {}\n\n{}\n\n", Usage(), summary);
  const auto add = [&](const Flag& flag) {
    help += fmt::format("  {:<28} {}\n", fmt::format("{} {}", flag.name, flag.value), flag.help);
  };
  for (const Flag& flag : flags) add(flag);
  for (const Flag& flag : CommonFlags()) add(flag);
  return help;
}

}  // namespace troupe
