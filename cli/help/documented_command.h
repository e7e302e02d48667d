// A command as completion scripts and manual pages show it, and what the names of its values reveal
// to a shell. Pure.
#ifndef TROUPE_CLI_HELP_DOCUMENTED_COMMAND_H_
#define TROUPE_CLI_HELP_DOCUMENTED_COMMAND_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/flag_parser.h"

namespace troupe {

struct DocumentedCommand {
  std::string name;         // one word or two, "checkpoints list"
  std::string positionals;  // as in the usage, "JOB"
  std::string summary;
  std::vector<Flag> flags;  // those of its help text
};

// Returns the first word of the name.
std::string GroupOf(const DocumentedCommand& command);
// Returns the second word of the name; empty if it has one.
std::string WordInGroup(const DocumentedCommand& command);
// Returns the commands of two words by their first one.
std::map<std::string, std::vector<DocumentedCommand>> GroupsOf(
    const std::vector<DocumentedCommand>& commands);
// Returns the first words of all commands, each once, in order.
std::vector<std::string> FirstWords(const std::vector<DocumentedCommand>& commands);

// Returns a text about a first word: the brief summary of the command with this name or, if there
// is none, the words that may follow.
std::string FirstWordText(const std::string& word, const std::vector<DocumentedCommand>& commands);

// The spellings of a flag: "-h" and "--help" of "-h,--help".
std::vector<std::string> Spellings(const Flag& flag);

// The words and files that a shell proposes for a value, or for the arguments of a command.
struct Completion {
  enum class Files { kNone, kAll, kDirectories };
  std::vector<std::string> words;
  Files files = Files::kNone;

  bool operator==(const Completion&) const = default;
};

// Returns the completion of a value whose name in the usage is `name`: the alternatives in lower
// case ("bash|zsh"), files for PATH, FILE or JOB.yaml, and directories for DIR or HF_DIR.
Completion CompletionOf(std::string_view name);
// Returns that of the flag's value: its words, if it has some.
Completion CompletionOf(const Flag& flag);

// Returns the beginning of a help text that fits next to the name: up to a semicolon, a parenthesis
// or the end of the sentence.
std::string Brief(std::string_view help);

}  // namespace troupe

#endif  // TROUPE_CLI_HELP_DOCUMENTED_COMMAND_H_
