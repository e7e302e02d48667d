// The command keys.
#include <fmt/format.h>
#include <unistd.h>

#include "base/program/program.h"
#include "cli/commands.h"
#include "cli/output/text_style.h"
#include "plan/job/job_resource.h"
#include "plan/job/key_table.h"
#include "report/text/json_text.h"

namespace troupe {
namespace {

constexpr SwitchFlag kMarkdownFlag{"--markdown", "", "prints the page docs/job-keys.md"};
constexpr SwitchFlag kKubernetesFlag{"--kubernetes", "",
                                     "prints the definition of TroupeJob, definition.yaml in "
                                     "deploy/kubernetes/components/jobs-crd"};

Json RowToJson(const KeyRow& row) {
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  return {{"key", row.key},
          {"type", row.type},
          {"default", text_or_null(row.default_value)},
          {"absent", text_or_null(row.absent)},
          {"range", text_or_null(row.range)},
          {"words", row.words},
          {"meaning", row.doc}};
}

StatusOr<ExitCode> KeysCommand(const CommandLine& line) {
  const std::string prefix = line.positional().empty() ? "" : line.positional()[0];
  const std::vector<KeyRow> rows = KeyTable(prefix);
  if (rows.empty()) return NoSuchKey(prefix);
  if (line.Get(kKubernetesFlag)) {
    if (!prefix.empty() || line.Get(kMarkdownFlag) || line.wants_json())
      return InvalidArgument(
          "--kubernetes prints a whole page in YAML: no PREFIX, --markdown or -o json");
    PrintOutput("{}", Lines{JobResourceDefinition()});
    return ExitCode::kDone;
  }
  if (line.wants_json()) {
    Json keys = Json::array();
    for (const KeyRow& row : rows) keys.push_back(RowToJson(row));
    PrintOutput("{}\n", Dump({{"keys", std::move(keys)}}));
  } else {
    PrintOutput("{}", Lines{line.Get(kMarkdownFlag)
                                ? KeyTableToMarkdown(rows)
                                : KeyTableToText(rows, TextStyleOf(STDOUT_FILENO).columns)});
  }
  return ExitCode::kDone;
}

}  // namespace

std::vector<Command> KeyCommands() {
  return {{.name = "keys",
           .positionals = "[PREFIX]",
           .most_positionals = 1,
           .summary = "Prints all keys of the job file, or those below PREFIX, with type, default, "
                      "values and meaning. Needs no cluster.",
           .flags = {&kMarkdownFlag, &kKubernetesFlag},
           .cluster = ClusterUse::kNone,
           .run = KeysCommand}};
}

}  // namespace troupe
