// Compiles a module of another framework for a slice of TPUs with libtpu, without a TPU, and prints
// what its program has: collectives, and memory in addition to its arguments.
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/flag_parser.h"
#include "base/text_file.h"
#include "kernels/xla/pjrt/compile_options.h"
#include "kernels/xla/pjrt/plugin_path.h"
#include "kernels/xla/pjrt/topology.h"

namespace troupe {
namespace {

struct Arguments {
  std::string module, topology;
  std::vector<std::string> options;
};

StatusOr<std::string> Compile(const Arguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const std::string path, kernels::xla::FindLibtpu());
  TROUPE_ASSIGN_OR_RETURN(const auto topology,
                          kernels::xla::Topology::Make(path, arguments.topology));
  TROUPE_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(arguments.module));
  std::vector<int> devices(topology->devices().size());
  std::iota(devices.begin(), devices.end(), 0);
  TROUPE_ASSIGN_OR_RETURN(
      const kernels::xla::CompiledProgram program,
      topology->Compile(text, kernels::xla::ParseOptionTexts(arguments.options), devices));
  std::string collectives;
  for (const auto& [kind, count] : program.collectives)
    collectives += fmt::format("{}\"{}\": {}", collectives.empty() ? "" : ", ", kind, count);
  const kernels::xla::CompiledMemory& memory = program.memory;
  return fmt::format("{{\"collectives\": {{{}}}, \"work_bytes\": {}}}\n", collectives,
                     memory.temporary + memory.results - memory.aliased);
}

int Main(int argc, char** argv) {
  Arguments arguments;
  FlagParser parser({.name = "troupe-bench-tpu",
                     .usage = "troupe-bench-tpu --module FILE --topology NAME [--option …]",
                     .summary = "Compiles a module for all devices of a slice of TPUs with libtpu. "
                                "Prints a JSON line with the number of its collectives by kind, "
                                "and the bytes that it needs in addition to its arguments."});
  parser.AddText({.name = "--module",
                  .value = "FILE",
                  .help = "StableHLO, divided with Shardy",
                  .required = true},
                 &arguments.module);
  parser.AddText({.name = "--topology",
                  .value = "NAME",
                  .help = "the slice, such as v6e:2x2",
                  .required = true},
                 &arguments.topology);
  parser.AddParsed({.name = "--option",
                    .value = "NAME=VALUE",
                    .help = "an option of the compiler",
                    .repeated = true},
                   [&](const std::string& value) {
                     arguments.options.push_back(value);
                     return OkStatus();
                   });
  if (const std::optional<int> ended = parser.ParseMain(argc, argv)) return *ended;
  const StatusOr<std::string> line = Compile(arguments);
  if (!line.ok()) {
    fmt::print(stderr, "troupe-bench-tpu: {}\n", ToString(line.status()));
    return 2;
  }
  fmt::print("{}", *line);
  // libtpu's threads may still run.
  std::fflush(stdout);
  std::_Exit(0);
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) { return troupe::Main(argc, argv); }
