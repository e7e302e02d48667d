#include "cli/help/fish_completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe {
namespace {

using Files = Completion::Files;

// The braces of the first function's list are those of fmt.
constexpr char kFishBegin[] =
    R"(# Completion of troupe for fish, as `troupe completion fish` prints it.
function __troupe_command
    set -l words (commandline -opc)
    switch "$words[2] $words[3]"
        case {}
            echo "$words[2] $words[3]"
        case '*'
            echo "$words[2]"
    end
end
function __troupe_in
    contains -- "$argv" (__troupe_command)
end
function __troupe_after
    set -l words (commandline -opc)
    test "$words[2..]" = "$argv"
end
complete -c troupe -f
)";

// Returns `text` between single quotes.
std::string FishQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\\' || c == '\'') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

// Returns the flags of `complete` for what completes a value or an argument.
std::string FishArguments(const Completion& completion) {
  std::string text;
  if (!completion.words.empty())
    text += fmt::format(" -a {}", FishQuoted(fmt::format("{}", fmt::join(completion.words, " "))));
  if (completion.files == Files::kAll) text += " -F";
  if (completion.files == Files::kDirectories) text += " -a '(__fish_complete_directories)'";
  return text;
}

// Returns the line for a word that follows the words `after`.
std::string WordLine(const std::string& after, const std::string& word, const std::string& text) {
  const std::string condition = after.empty() ? "__troupe_after" : "__troupe_after " + after;
  return fmt::format("complete -c troupe -n {} -a {} -d {}\n", FishQuoted(condition), word,
                     FishQuoted(text));
}

// Returns the lines for the flags and arguments of a command.
std::string CommandLines(const DocumentedCommand& command) {
  const std::string begin =
      fmt::format("complete -c troupe -n {}", FishQuoted("__troupe_in " + command.name));
  std::string lines;
  for (const Flag& flag : command.flags) {
    lines += begin;
    for (const std::string& spelling : Spellings(flag)) {
      const bool is_long = spelling.starts_with("--");
      lines += fmt::format(" {} {}", is_long ? "-l" : "-s", spelling.substr(is_long ? 2 : 1));
    }
    const Completion completion = CompletionOf(flag);
    if (!flag.value.empty()) lines += completion.files == Files::kAll ? " -r" : " -x";
    lines += FishArguments(completion) + fmt::format(" -d {}\n", FishQuoted(Brief(flag.help)));
  }
  const std::string arguments = FishArguments(CompletionOf(command.positionals));
  return arguments.empty() ? lines : lines + begin + arguments + "\n";
}

}  // namespace

std::string FishCompletion(const std::vector<DocumentedCommand>& commands) {
  std::vector<std::string> of_two_words;
  for (const DocumentedCommand& command : commands) {
    if (!WordInGroup(command).empty()) of_two_words.push_back(FishQuoted(command.name));
  }
  std::string script = fmt::format(kFishBegin, fmt::join(of_two_words, " "));
  for (const std::string& word : FirstWords(commands))
    script += WordLine("", word, FirstWordText(word, commands));
  for (const auto& [group, members] : GroupsOf(commands)) {
    for (const DocumentedCommand& command : members)
      script += WordLine(group, WordInGroup(command), Brief(command.summary));
  }
  for (const DocumentedCommand& command : commands) script += CommandLines(command);
  return script;
}

}  // namespace troupe
