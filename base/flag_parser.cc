#include "base/flag_parser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "base/program/program.h"
#include "base/text/home_path.h"
#include "base/text/manual_page.h"
#include "base/text/printable.h"
#include "base/text/wrapped.h"

namespace troupe {
namespace {

constexpr size_t kNameColumns = 28;
constexpr size_t kLineColumns = 80;
constexpr int kUsageError = 2;

template <typename Number>
std::string ToText(NumberRange<Number> range) {
  std::string text = "number";
  if constexpr (std::is_integral_v<Number>) text = "whole number";
  const bool bounded = range.most < std::numeric_limits<Number>::max();
  if (!std::is_integral_v<Number> && range.least == static_cast<Number>(kAboveZero)) {
    return text + " above 0" + (bounded ? fmt::format(" and at most {}", range.most) : "");
  }
  return text + (bounded ? fmt::format(" from {} to {}", range.least, range.most)
                         : fmt::format(" of at least {}", range.least));
}

Flag WithDefault(Flag flag, const std::string& value) {
  if (!value.empty()) flag.help += fmt::format(" (default: {})", value);
  return flag;
}

// Checks the arguments of a command line, a value under the name of its flag.
Status CheckTexts(const std::vector<std::string>& arguments) {
  std::string flag;  // the argument before, if the next one may be its value
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const bool is_flag = argument.size() > 2 && argument.starts_with("--");
    const size_t equals = is_flag ? argument.find('=') : std::string::npos;
    const std::string name = argument.substr(0, equals);
    if (equals != std::string::npos && TextFault(name).empty()) {
      TROUPE_RETURN_IF_ERROR(CheckText(name, argument.substr(equals + 1)));
    } else {
      const std::string what = flag.empty() ? fmt::format("argument {}", i + 1) : flag;
      TROUPE_RETURN_IF_ERROR(CheckText(what, argument));
    }
    flag = is_flag && equals == std::string::npos ? argument : "";
  }
  return OkStatus();
}

// Returns `usage` with another character in place of the spaces at which no line may end: those
// within brackets, and that between a flag and its value.
std::string WithNoBreaks(std::string_view usage, std::string_view no_break) {
  std::string joined;
  int brackets = 0;
  bool is_flag = false;  // the word is that of a flag
  for (size_t i = 0; i < usage.size(); ++i) {
    const char c = usage[i];
    brackets += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (i == 0 || usage[i - 1] == ' ') is_flag = usage.substr(i).starts_with("--");
    const std::string_view rest = usage.substr(i + 1);
    const bool has_value = is_flag && !rest.starts_with('-') && !rest.starts_with('[');
    if (c == ' ' && (brackets > 0 || has_value)) {
      joined += no_break;
    } else {
      joined += c;
    }
  }
  return joined;
}

// Returns a usage, which may have several lines, for the help text.
std::string WrappedUsage(std::string_view usage) {
  constexpr std::string_view kBegin = "usage: ", kNoBreak = "\u00a0";
  std::string lines;
  for (size_t at = 0; at <= usage.size();) {
    const size_t end = std::min(usage.find('\n', at), usage.size());
    std::string_view form = usage.substr(at, end - at);
    form.remove_prefix(std::min(form.find_first_not_of(' '), form.size()));
    const std::string prefix = at == 0 ? std::string(kBegin) : std::string(kBegin.size(), ' ');
    lines += WrappedBehind(prefix, WithNoBreaks(form, kNoBreak), kLineColumns) + "\n";
    at = end + 1;
  }
  for (size_t at = lines.find(kNoBreak); at != lines.npos; at = lines.find(kNoBreak, at))
    lines.replace(at, kNoBreak.size(), " ");
  return lines;
}

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::string usage) : usage_(std::move(usage)) {
    column_width(kNameColumns);
  }

  std::string make_usage(const CLI::App*, std::string) const override {
    return "\n" + WrappedUsage(usage_);
  }

  // The library ends the visible flags with an empty line if hidden ones follow, and begins the
  // footer with another one.
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string help = CLI::Formatter::make_help(app, std::move(name), mode);
    for (size_t at = help.find("\n\n\n"); at != std::string::npos; at = help.find("\n\n\n"))
      help.erase(at, 1);
    return help;
  }

 private:
  const std::string usage_;
};

}  // namespace

class FlagParser::Library {
 public:
  explicit Library(const Program& program)
      : app_(Wrapped(program.summary, kLineColumns), program.name) {
    app_.formatter(std::make_shared<HelpFormatter>(program.usage));
    app_.footer(program.footer);
    app_.set_help_flag();  // ours is a flag like any other
    app_.allow_extras();   // a positional option of the library would split "[a,b]"
    unknown_flag_hint_ = program.unknown_flag_hint;
  }

  // Declares a flag. It is read by a callback, because the numbers that the library itself can read
  // include octal ones.
  CLI::Option* Add(const std::string& name, const std::string& help,
                   std::function<Status(const std::vector<std::string>&)> set) {
    const auto callback = [this, set = std::move(set)](const CLI::results_t& values) {
      if (status_.ok()) status_ = set(values);
      return true;
    };
    return app_.add_option(name, callback, Wrapped(help, kLineColumns - kNameColumns))
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  const CLI::App& app() const { return app_; }

  bool TakesValue(const std::string& name) const {
    const CLI::Option* const option = app_.get_option_no_throw(name);
    return option != nullptr && option->get_items_expected_max() > 0;
  }

  bool IsGiven(const std::string& name) const { return app_.get_option(name)->count() > 0; }

  // Appends to `others` the arguments that are not flags.
  Status Parse(const std::vector<std::string>& arguments, std::vector<std::string>* others) {
    // The library wants the arguments in reverse, and reads an empty value after '=' as none.
    std::vector<std::string> reversed;
    for (const std::string& argument : arguments) {
      const std::string name = argument.substr(0, argument.find('='));
      const bool empty_value = argument.size() == name.size() + 1 && TakesValue(name);
      reversed.push_back(empty_value ? name : argument);
      if (empty_value) reversed.emplace_back();
    }
    std::ranges::reverse(reversed);
    try {
      app_.parse(std::move(reversed));
    } catch (const CLI::ParseError& error) {
      // A flag takes the next argument, whatever that is: only the last one can lack its value.
      const std::string& last = arguments.back();
      if (!TakesValue(last)) return InvalidArgument("{}", error.what());
      return InvalidArgument("{}: needs a value, {}", last,
                             app_.get_option_no_throw(last)->get_option_text());
    }
    bool flags_ended = false;
    for (const std::string& left : app_.remaining()) {
      if (!flags_ended && left == "--") {
        flags_ended = true;
      } else if (!flags_ended && left.size() > 1 && left.starts_with('-')) {
        return UnknownFlag(left.substr(0, left.find('=')));
      } else {
        others->push_back(left);
      }
    }
    return status_;
  }

 private:
  Status UnknownFlag(const std::string& flag) const {
    const std::string hint = unknown_flag_hint_ ? unknown_flag_hint_(flag) : "";
    if (!hint.empty()) return InvalidArgument("{}: unknown flag{}", flag, hint);
    return InvalidArgument("{}: unknown flag (see {} --help)", flag, app_.get_name());
  }

  CLI::App app_;
  std::function<std::string(const std::string& flag)> unknown_flag_hint_;
  Status status_;  // the first error of a callback
};

template <typename Number>
StatusOr<Number> ParseNumber(std::string_view flag, std::string_view text,
                             NumberRange<std::type_identity_t<Number>> range) {
  Number number{};
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || end != last || !(number >= range.least && number <= range.most)) {
    return InvalidArgument("{} {}: not a {}", flag, text, ToText(range));
  }
  return number;
}

Status CheckHostPort(std::string_view flag, std::string_view text, int least_port) {
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    const char* const last = text.data() + text.size();
    int port = -1;
    const auto [end, error] = std::from_chars(text.data() + colon + 1, last, port);
    if (error == std::errc() && end == last && port >= least_port && port <= 65535)
      return OkStatus();
  }
  return InvalidArgument("{} {} is not HOST:PORT, with a port from {} to 65535", flag, text,
                         least_port);
}

Status CheckText(std::string_view what, std::string_view text) {
  const std::string fault = TextFault(text);
  if (fault.empty()) return OkStatus();
  return InvalidArgument("{}: \"{}\" {}", what, PrintableLine(text), fault);
}

bool NamesPath(std::string_view value) {
  constexpr std::string_view kEnds[] = {"DIR",    "FILE",      "PATH",  "PREFIX",
                                        "FOLDER", "DIRECTORY", ".yaml", ".jsonl"};
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return value.ends_with(end); });
}

StatusOr<std::optional<std::string>> TextFromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  TROUPE_RETURN_IF_ERROR(CheckText(name, value));
  return value;
}

const char* const kVersion = TROUPE_VERSION;

FlagParser::FlagParser(Program program)
    : program_(std::move(program)), library_(std::make_unique<Library>(program_)) {
  AddSwitch({"-h,--help", "", "print this text"}, &wants_help_);
}

FlagParser::~FlagParser() = default;

void FlagParser::AddParsed(const Flag& flag,
                           std::function<Status(const std::string& value)> parse) {
  const bool has_value = !flag.value.empty();
  const auto set = [name = flag.name, repeated = flag.repeated, has_value,
                    is_path = NamesPath(flag.value),
                    parse = std::move(parse)](const std::vector<std::string>& values) -> Status {
    if (!has_value) {
      const bool plain = std::ranges::all_of(values, [](const auto& v) { return v == "true"; });
      return plain ? parse("") : InvalidArgument("{}: takes no value", name);
    }
    if (values.size() > 1 && !repeated) {
      return InvalidArgument("{}: given twice, {} and {}", name, values[0], values[1]);
    }
    for (const std::string& value : values) {
      const std::string fault = is_path ? HomePathFault(value) : "";
      if (!fault.empty()) return InvalidArgument("{} {}", name, fault);
      TROUPE_RETURN_IF_ERROR(parse(value));
    }
    return OkStatus();
  };
  flags_.push_back(flag);
  CLI::Option* const option =
      library_->Add(flag.name, flag.required ? flag.help + "; required" : flag.help, set);
  if (flag.help.empty()) option->group("");
  if (has_value) {
    option->option_text(flag.value);
  } else {
    option->type_size(0)->expected(0);
  }
}

void FlagParser::AddText(const Flag& flag, std::string* text) {
  AddParsed(WithDefault(flag, *text), [text](const std::string& value) {
    *text = value;
    return OkStatus();
  });
}

void FlagParser::AddWord(const Flag& flag, const std::vector<std::string>& words,
                         std::string* word) {
  Flag complete = WithDefault(flag, *word);
  complete.words = words;
  AddParsed(complete, [name = flag.name, words, word](const std::string& value) -> Status {
    if (std::ranges::find(words, value) == words.end()) {
      return InvalidArgument("{} {}: not {}", name, value, fmt::join(words, " or "));
    }
    *word = value;
    return OkStatus();
  });
}

template <typename Number>
void FlagParser::AddNumber(const Flag& flag, NumberRange<std::type_identity_t<Number>> range,
                           Number* number) {
  AddParsed(WithDefault(flag, fmt::format("{}", *number)),
            [name = flag.name, range, number](const std::string& value) -> Status {
              TROUPE_ASSIGN_OR_RETURN(*number, ParseNumber<Number>(name, value, range));
              return OkStatus();
            });
}

template <typename Number>
void FlagParser::AddOptionalNumber(const Flag& flag,
                                   NumberRange<std::type_identity_t<Number>> range,
                                   std::optional<Number>* number) {
  AddParsed(flag, [name = flag.name, range, number](const std::string& value) -> Status {
    TROUPE_ASSIGN_OR_RETURN(*number, ParseNumber<Number>(name, value, range));
    return OkStatus();
  });
}

void FlagParser::AddSwitch(const Flag& flag, bool* given) {
  AddParsed(flag, [given](const std::string&) {
    *given = true;
    return OkStatus();
  });
}

void FlagParser::AddArguments(int least, int most, std::vector<std::string>* arguments) {
  arguments_ = arguments;
  least_arguments_ = least;
  most_arguments_ = most;
}

Status FlagParser::Parse(const std::vector<std::string>& arguments) {
  TROUPE_RETURN_IF_ERROR(CheckTexts(arguments));
  std::vector<std::string> others;
  TROUPE_RETURN_IF_ERROR(library_->Parse(arguments, &others));
  if (wants_help_) return OkStatus();
  const int count = static_cast<int>(others.size());
  if (arguments_ == nullptr && count > 0) {
    return InvalidArgument("{}: unexpected argument (see {} --help)", others[0], program_.name);
  }
  if (count < least_arguments_ || count > most_arguments_) {
    return InvalidArgument("usage: {}", program_.usage);
  }
  for (int i = 0; i < count; ++i) {
    const std::string fault = HomePathFault(others[static_cast<size_t>(i)]);
    if (!fault.empty()) return InvalidArgument("argument {} {}", i + 1, fault);
  }
  for (const Flag& flag : flags_) {
    if (flag.required && !library_->IsGiven(flag.name))
      return InvalidArgument("{} {} is required", flag.name, flag.value);
  }
  if (arguments_ != nullptr) *arguments_ = std::move(others);
  return OkStatus();
}

std::optional<int> FlagParser::ParseMain(int argc, char** argv,
                                         const std::function<Status()>& check) {
  bool wants_version = false, wants_manual = false;
  AddSwitch({"--version", "", "print the version"}, &wants_version);
  AddSwitch({"--manual", "", "print the manual page, in roff"}, &wants_manual);
  const Status parsed = Parse({argv + 1, argv + argc});
  if (wants_help_ || wants_manual || wants_version) {
    PrintOutput("{}", Lines{wants_help_    ? Help()
                            : wants_manual ? Manual()
                                           : fmt::format("{} {}\n", program_.name, kVersion)});
    return 0;
  }
  if (!parsed.ok()) {
    // A usage may have several lines, and arguments have none.
    PrintMessage("{}: {}\n", program_.name, Lines{Message(parsed)});
    return kUsageError;
  }
  const Status checked = check ? check() : OkStatus();
  if (checked.ok()) return std::nullopt;
  PrintMessage("{}: {}\n", program_.name, Message(checked));
  return kUsageError;
}

std::string FlagParser::Help() const { return library_->app().help(); }

std::string FlagParser::Manual() const {
  ManualPage page(program_.name, kVersion, program_.summary);
  page.AddSection("SYNOPSIS");
  page.AddLines(program_.usage);
  page.AddSection("DESCRIPTION");
  page.AddText(program_.summary);
  page.AddSection("OPTIONS");
  for (const Flag& flag : flags_) {
    if (!flag.help.empty())
      page.AddEntry(flag.name, flag.value, flag.required ? flag.help + "; required" : flag.help);
  }
  if (program_.footer.empty()) return page.roff();
  page.AddSection("NOTES");
  page.AddText(program_.footer);
  return page.roff();
}

template StatusOr<int> ParseNumber<int>(std::string_view, std::string_view, NumberRange<int>);
template StatusOr<int64_t> ParseNumber<int64_t>(std::string_view, std::string_view,
                                                NumberRange<int64_t>);
template StatusOr<uint64_t> ParseNumber<uint64_t>(std::string_view, std::string_view,
                                                  NumberRange<uint64_t>);
template StatusOr<double> ParseNumber<double>(std::string_view, std::string_view,
                                              NumberRange<double>);
template void FlagParser::AddNumber<int>(const Flag&, NumberRange<int>, int*);
template void FlagParser::AddNumber<int64_t>(const Flag&, NumberRange<int64_t>, int64_t*);
template void FlagParser::AddNumber<uint64_t>(const Flag&, NumberRange<uint64_t>, uint64_t*);
template void FlagParser::AddNumber<double>(const Flag&, NumberRange<double>, double*);
template void FlagParser::AddOptionalNumber<int>(const Flag&, NumberRange<int>,
                                                 std::optional<int>*);
template void FlagParser::AddOptionalNumber<int64_t>(const Flag&, NumberRange<int64_t>,
                                                     std::optional<int64_t>*);
template void FlagParser::AddOptionalNumber<double>(const Flag&, NumberRange<double>,
                                                    std::optional<double>*);

}  // namespace troupe
