#include "cli/help/manual.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/manual_page.h"

namespace troupe {
namespace {

constexpr char kManualSummary[] = "Trains language models on the devices of a cluster.";
constexpr char kManualDescription[] =
    R"(A job file describes a model, its data and its training. troupe submits it to a coordinator,
which plans the job, places its ranks on workers and lets it continue from its last checkpoint when
a process dies. Other commands show jobs, checkpoints and workers, and change them.

Results go to standard output, and messages to standard error. Flags may be written as --flag value
or --flag=value, before or after the arguments of a command; -- ends the flags.)";
constexpr char kIgnoredFlags[] =
    "Commands that need no cluster accept these flags too, and ignore them.";

constexpr std::pair<const char*, const char*> kVariables[] = {
    {"TROUPE_COORDINATOR",
     "address of the coordinator, where neither --coordinator nor --data-dir "
     "is given"},
    {"TROUPE_TLS_DIR", "as --tls-dir, unless the coordinator is that of a local cluster"},
    {"TROUPE_TOKEN_FILE", "as --token-file, unless the coordinator is that of a local cluster"},
    {"NO_COLOR", "if it is set and not empty, texts on a terminal have no colours"},
    {"COLUMNS", "width of the lines on a terminal (default: that of its window)"},
    {"XDG_STATE_HOME", "folder in which troupe keeps its state (default: ~/.local/state)"}};
constexpr std::pair<const char*, const char*> kStateFiles[] = {
    {"~/.local/state/troupe/clusters",
     "folders of the local clusters that `troupe up` has started, the newest first"},
    {"~/.local/state/troupe/default", "folder of the first local cluster, if none is stated"}};

bool IsAmong(const Flag& flag, const std::vector<Flag>& flags) {
  return std::ranges::any_of(
      flags, [&](const Flag& other) { return other.name == flag.name && other.help == flag.help; });
}

void AddFlagEntry(const Flag& flag, ManualPage* page) {
  page->AddEntry(flag.name, flag.value, flag.required ? flag.help + "; required" : flag.help);
}

void AddCommand(const DocumentedCommand& command, const ManualContent& content, ManualPage* page) {
  const bool has_arguments = !command.positionals.empty();
  page->AddSubsection(command.name + (has_arguments ? " " + command.positionals : ""));
  page->AddText(command.summary);
  for (const Flag& flag : command.flags) {
    if (!IsAmong(flag, content.flags_of_all) && !IsAmong(flag, content.flags_of_coordinator))
      AddFlagEntry(flag, page);
  }
}

}  // namespace

std::string TroupeManual(const ManualContent& content) {
  ManualPage page("troupe", content.version, kManualSummary);
  page.AddSection("SYNOPSIS");
  page.AddLines("troupe COMMAND [FLAG …] [ARGUMENT …]\ntroupe COMMAND --help\ntroupe --version");
  page.AddSection("DESCRIPTION");
  page.AddText(kManualDescription);
  page.AddSection("COMMANDS");
  for (const DocumentedCommand& command : content.commands) AddCommand(command, content, &page);
  page.AddSection("FLAGS OF EVERY COMMAND");
  for (const Flag& flag : content.flags_of_all) AddFlagEntry(flag, &page);
  page.AddSection("FLAGS OF COMMANDS THAT CALL THE COORDINATOR");
  for (const Flag& flag : content.flags_of_coordinator) AddFlagEntry(flag, &page);
  page.AddText(kIgnoredFlags);
  page.AddSection("ENVIRONMENT");
  for (const auto& [name, text] : kVariables) page.AddEntry(name, "", text);
  page.AddSection("FILES");
  for (const auto& [path, text] : kStateFiles) page.AddEntry(path, "", text);
  page.AddSection("EXIT STATUS");
  for (const auto& [code, meaning] : content.exit_codes)
    page.AddEntry(fmt::to_string(code), "", meaning);
  page.AddSection("SEE ALSO");
  page.AddText("troupe-coordinator(1), troupe-worker(1)");
  return page.roff();
}

}  // namespace troupe
