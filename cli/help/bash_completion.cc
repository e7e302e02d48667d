#include "cli/help/bash_completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe {
namespace {

using Files = Completion::Files;

// Readline makes words of `--flag=value` that are `--flag`, `=` and `value`.
constexpr char kBashBegin[] =
    R"(# Completion of troupe for bash, as `troupe completion bash` prints it.
_troupe() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  if [[ $current == '=' ]]; then
    current=
  elif [[ $before == '=' ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  local command=${COMP_WORDS[1]} words= flags= files=
)";

constexpr char kBashEnd[] = R"(  esac
  [[ $current != -* ]] || words=$flags files=
  mapfile -t COMPREPLY < <(
    compgen -W "$words" -- "$current"
    [[ -z $files ]] || compgen $files -- "$current"
  )
  [[ -z $files ]] || compopt -o filenames 2> /dev/null
}
complete -F _troupe troupe
)";

// Returns assignments to the variables of the script: "words='json text'".
std::string Assignments(const Completion& completion, const std::string& flags) {
  std::string text;
  if (!completion.words.empty())
    text += fmt::format(" words='{}'", fmt::join(completion.words, " "));
  if (!flags.empty()) text += fmt::format(" flags='{}'", flags);
  if (completion.files == Files::kAll) text += " files=-f";
  if (completion.files == Files::kDirectories) text += " files=-d";
  return text;
}

// Returns the branch for what follows the command: the value of the flag before, or else its flags
// and arguments.
std::string CommandBranch(const DocumentedCommand& command) {
  std::vector<std::string> all, of_any_value;
  std::string text = fmt::format("    '{}')\n      case $before in\n", command.name);
  for (const Flag& flag : command.flags) {
    const std::vector<std::string> spellings = Spellings(flag);
    all.insert(all.end(), spellings.begin(), spellings.end());
    if (flag.value.empty()) continue;
    const std::string assignments = Assignments(CompletionOf(flag), "");
    if (assignments.empty()) {
      of_any_value.insert(of_any_value.end(), spellings.begin(), spellings.end());
    } else {
      text += fmt::format("        {}){} ;;\n", fmt::join(spellings, " | "), assignments);
    }
  }
  if (!of_any_value.empty())
    text += fmt::format("        {}) ;;\n", fmt::join(of_any_value, " | "));
  return text + fmt::format("        *){} ;;\n      esac\n      ;;\n",
                            Assignments(CompletionOf(command.positionals),
                                        fmt::format("{}", fmt::join(all, " "))));
}

// Returns the words that follow the first word of a group, as an assignment.
std::string GroupBranch(const std::string& group, const std::vector<DocumentedCommand>& commands) {
  Completion words;
  for (const DocumentedCommand& command : commands) words.words.push_back(WordInGroup(command));
  return fmt::format("      {}){} ;;\n", group, Assignments(words, "-h --help"));
}

}  // namespace

std::string BashCompletion(const std::vector<DocumentedCommand>& commands) {
  std::vector<std::string> of_two_words;
  for (const DocumentedCommand& command : commands) {
    if (!WordInGroup(command).empty()) of_two_words.push_back(fmt::format("'{}'", command.name));
  }
  Completion first{.words = FirstWords(commands)};
  first.words.emplace_back("help");
  std::string script = kBashBegin;
  script += fmt::format("  if ((COMP_CWORD == 1)); then\n    command=\n   {}\n",
                        Assignments(first, "-h --help --version"));
  script += "  elif ((COMP_CWORD == 2)); then\n    case $command in\n";
  for (const auto& [group, members] : GroupsOf(commands)) script += GroupBranch(group, members);
  script += "    esac\n  else\n    case \"$command ${COMP_WORDS[2]}\" in\n";
  script += fmt::format("      {}) command+=\" ${{COMP_WORDS[2]}}\" ;;\n",
                        fmt::join(of_two_words, " | "));
  script += "    esac\n  fi\n  case $command in\n";
  for (const DocumentedCommand& command : commands) script += CommandBranch(command);
  return script + kBashEnd;
}

}  // namespace troupe
