#include "cli/help/documented_command.h"

#include <algorithm>

namespace troupe {
namespace {

std::vector<std::string> Split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + separator.size());
  }
}

// Returns the names between the marks of a usage: "PATH" and "JOB" of "(PATH|JOB[@STEP])…".
std::vector<std::string> NamesIn(std::string_view usage) {
  std::string plain(usage);
  for (const std::string_view mark : {"-or-", "|", "[", "]", "(", ")", "…"}) {
    for (size_t at = plain.find(mark); at != std::string::npos; at = plain.find(mark, at))
      plain.replace(at, mark.size(), " ");
  }
  std::vector<std::string> names = Split(plain, " ");
  std::erase(names, "");
  return names;
}

bool IsWord(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

}  // namespace

std::string GroupOf(const DocumentedCommand& command) {
  return command.name.substr(0, command.name.find(' '));
}

std::string WordInGroup(const DocumentedCommand& command) {
  const size_t space = command.name.find(' ');
  return space == std::string::npos ? "" : command.name.substr(space + 1);
}

std::map<std::string, std::vector<DocumentedCommand>> GroupsOf(
    const std::vector<DocumentedCommand>& commands) {
  std::map<std::string, std::vector<DocumentedCommand>> groups;
  for (const DocumentedCommand& command : commands) {
    if (!WordInGroup(command).empty()) groups[GroupOf(command)].push_back(command);
  }
  return groups;
}

std::vector<std::string> FirstWords(const std::vector<DocumentedCommand>& commands) {
  std::vector<std::string> words;
  for (const DocumentedCommand& command : commands) {
    if (std::ranges::find(words, GroupOf(command)) == words.end())
      words.push_back(GroupOf(command));
  }
  return words;
}

std::string FirstWordText(const std::string& word, const std::vector<DocumentedCommand>& commands) {
  const auto alone = std::ranges::find(commands, word, &DocumentedCommand::name);
  if (alone != commands.end()) return Brief(alone->summary);
  std::string words;
  for (const DocumentedCommand& command : commands) {
    if (GroupOf(command) == word) words += (words.empty() ? "" : ", ") + WordInGroup(command);
  }
  return words;
}

std::vector<std::string> Spellings(const Flag& flag) { return Split(flag.name, ","); }

Completion CompletionOf(std::string_view name) {
  Completion completion;
  for (const std::string& one : NamesIn(name)) {
    if (one == "PATH" || one == "FILE" || one.ends_with(".yaml")) {
      completion.files = Completion::Files::kAll;
    } else if ((one == "DIR" || one.ends_with("_DIR")) &&
               completion.files == Completion::Files::kNone) {
      completion.files = Completion::Files::kDirectories;
    } else if (name.find('|') != std::string_view::npos && IsWord(one)) {
      completion.words.push_back(one);
    }
  }
  return completion;
}

Completion CompletionOf(const Flag& flag) {
  if (!flag.words.empty()) return {.words = flag.words};
  return CompletionOf(flag.value);
}

std::string Brief(std::string_view help) {
  size_t end = help.size();
  for (const std::string_view mark : {"; ", " (", ". "}) end = std::min(end, help.find(mark));
  std::string brief(help.substr(0, end));
  if (brief.ends_with('.')) brief.pop_back();
  return brief;
}

}  // namespace troupe
