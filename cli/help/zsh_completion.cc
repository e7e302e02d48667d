#include "cli/help/zsh_completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe {
namespace {

using Files = Completion::Files;

constexpr char kZshBegin[] = R"(#compdef troupe
# Completion of troupe for zsh, as `troupe completion zsh` prints it.
_troupe() {
  local -a commands
  local command=$words[2]
  if (( CURRENT == 2 )); then
    commands=(
)";

// The script goes on as if the command were one word: _arguments completes what follows it.
constexpr char kZshMiddle[] = R"(  esac
  if (( CURRENT == 3 && $#commands )); then
    _describe command commands
  elif (( $#commands )) && [[ -n ${(M)commands:#$words[3]:*} ]]; then
    command+=" $words[3]"
    shift words
    (( CURRENT-- ))
  fi
  shift words
  (( CURRENT-- ))
  case $command in
)";

constexpr char kZshEnd[] = R"(  esac
}
if [[ $funcstack[1] == _troupe ]]; then
  _troupe "$@"
else
  compdef _troupe troupe
fi
)";

// Returns `text` between single quotes.
std::string ZshQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

// Returns `text` with a backslash in front of each of `marks`, which would end its part of an
// argument of _arguments.
std::string ZshEscaped(std::string_view text, std::string_view marks) {
  std::string escaped;
  for (const char c : text) {
    if (marks.find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// Returns the end of an argument of _arguments: the name of a value, and what completes it.
std::string ZshValue(std::string_view name, const Completion& completion) {
  std::string action = " ";
  if (completion.files == Files::kAll) action = "_files";
  if (completion.files == Files::kDirectories) action = "_files -/";
  if (!completion.words.empty()) action = fmt::format("({})", fmt::join(completion.words, " "));
  return fmt::format(":{}:{}", ZshEscaped(name, ":"), action);
}

// Returns an argument of _describe.
std::string ZshDescribed(const std::string& word, const std::string& text) {
  return ZshQuoted(fmt::format("{}:{}", word, text));
}

std::string ZshBranch(const DocumentedCommand& command) {
  std::string text = fmt::format("    ({})\n      _arguments", ZshQuoted(command.name));
  for (const Flag& flag : command.flags) {
    const std::vector<std::string> spellings = Spellings(flag);
    const std::string excluded =
        spellings.size() > 1 ? fmt::format("({})", fmt::join(spellings, " ")) : "";
    const std::string value = flag.value.empty() ? "" : ZshValue(flag.value, CompletionOf(flag));
    for (const std::string& spelling : spellings) {
      const bool takes_equals = !value.empty() && spelling.starts_with("--");
      text += " \\\n        " +
              ZshQuoted(fmt::format("{}{}{}{}[{}]{}", excluded, flag.repeated ? "*" : "", spelling,
                                    takes_equals ? "=" : "", ZshEscaped(Brief(flag.help), "\\[]:"),
                                    value));
    }
  }
  if (!command.positionals.empty()) {
    const Completion completion = CompletionOf(command.positionals);
    text += " \\\n        " + ZshQuoted("*" + ZshValue(command.positionals, completion));
  }
  return text + "\n      ;;\n";
}

}  // namespace

std::string ZshCompletion(const std::vector<DocumentedCommand>& commands) {
  std::string script = kZshBegin;
  for (const std::string& word : FirstWords(commands))
    script += fmt::format("      {}\n", ZshDescribed(word, FirstWordText(word, commands)));
  script += "    )\n    _describe command commands\n    return\n  fi\n  case $command in\n";
  for (const auto& [group, members] : GroupsOf(commands)) {
    script += fmt::format("    ({})\n      commands=(\n", group);
    for (const DocumentedCommand& command : members) {
      script +=
          fmt::format("        {}\n", ZshDescribed(WordInGroup(command), Brief(command.summary)));
    }
    script += "      )\n      ;;\n";
  }
  script += kZshMiddle;
  for (const DocumentedCommand& command : commands) script += ZshBranch(command);
  return script + kZshEnd;
}

}  // namespace troupe
