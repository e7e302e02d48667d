// Commands for the tests of scripts and pages that are made of them.
#ifndef TROUPE_CLI_HELP_SAMPLE_COMMANDS_TEST_H_
#define TROUPE_CLI_HELP_SAMPLE_COMMANDS_TEST_H_

#include <vector>

#include "cli/help/documented_command.h"

namespace troupe {

inline std::vector<DocumentedCommand> SampleCommands() {
  const Flag help{.name = "-h,--help", .help = "print this text"};
  return {
      {.name = "up",
       .summary = "Starts a local cluster; returns when it is ready.",
       .flags = {help,
                 {.name = "--workers", .value = "N", .help = "it's [1]: \\ (default: 1)"},
                 {.name = "--set", .value = "KEY=VALUE", .help = "any key", .repeated = true},
                 {.name = "--data-dir", .value = "DIR", .help = "where"},
                 {.name = "-o", .value = "FORMAT", .help = "format", .words = {"json", "text"}}}},
      {.name = "workers", .summary = "Lists the workers."},
      {.name = "workers drain", .positionals = "NAME", .summary = "Drains a worker."},
      {.name = "data export",
       .positionals = "PATH|JOB[@STEP]",
       .summary = "Writes the weights.",
       .flags = {help, {.name = "--to", .value = "HF_DIR", .help = "out", .required = true}}},
      {.name = "completion", .positionals = "bash|zsh|fish", .summary = "Prints a script."}};
}

}  // namespace troupe

#endif  // TROUPE_CLI_HELP_SAMPLE_COMMANDS_TEST_H_
