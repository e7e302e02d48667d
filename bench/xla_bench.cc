// Measures a whole training step of one rank on a device of XLA: Troupe's own programs, or one
// module of another framework that the same plugin runs with the same options.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/file_system.h"
#include "base/flag_parser.h"
#include "base/text_file.h"
#include "bench/module_step.h"
#include "bench/program_bench.h"
#include "bench/timed_client.h"
#include "bench/training_step.h"
#include "kernels/xla/pjrt/plugin_path.h"
#include "kernels/xla/runtime/xla_backend.h"

namespace troupe {
namespace {

struct Arguments {
  bench::StepShape shape;
  std::string module, module_arguments;  // paths; empty: Troupe's own programs
  std::string executables;               // folder of compiled programs; empty: none is kept
  bool operations = false;
};

[[noreturn]] void Refuse(const Status& status) {
  fmt::print(stderr, "troupe-bench-xla: {}\n", ToString(status));
  std::exit(2);
}

template <typename T>
T OrRefuse(StatusOr<T> made) {
  if (!made.ok()) Refuse(made.status());
  return *std::move(made);
}

void AddFlags(FlagParser& parser, Arguments* arguments) {
  bench::StepShape& shape = arguments->shape;
  bench::AddShapeFlags(parser, &shape);
  parser.AddOptionalNumber(
      {"--document", "TOKENS", "length of the documents of a sample (default: one)"}, {.least = 1},
      &shape.document);
  bench::AddCpuTimeFlag(parser);
  parser.AddSwitch({"--operations", "",
                    "prints the seconds of each kind of Troupe's operations, and runs no step"},
                   &arguments->operations);
  parser.AddText({"--executables", "FOLDER", "keeps Troupe's compiled programs, and loads them"},
                 &arguments->executables);
  parser.AddText({"--module", "FILE", "a step as StableHLO, run instead of Troupe's programs"},
                 &arguments->module);
  parser.AddText({"--module-arguments", "FILE", "the arguments of the module, one line for each"},
                 &arguments->module_arguments);
}

std::function<double()> StepOf(const Arguments& arguments, bench::TimedClient& client) {
  if (arguments.module.empty()) {
    std::unique_ptr<kernels::xla::ExecutableCache> executables;
    if (!arguments.executables.empty()) {
      static PosixFileSystem files;
      executables = std::make_unique<kernels::xla::ExecutableCache>(
          files, arguments.executables, kernels::xla::kMostExecutableBytes);
    }
    auto* const programs = new kernels::xla::ProgramCache(
        client, {}, std::move(executables));  // lives until the process ends
    auto* const backend =
        OrRefuse(kernels::xla::XlaBackend::Make(*programs, {.use = {.single_microbatch = true,
                                                                    .reads_gradients = false,
                                                                    .evaluates = false},
                                                            .threads = arguments.shape.threads}))
            .release();
    auto training = std::make_shared<bench::TrainingStep>(*backend, arguments.shape);
    if (arguments.operations) {
      bench::PrintOperations(*backend, *training);
      std::fflush(stdout);
      std::_Exit(0);
    }
    return [training] { return training->Run(); };
  }
  const auto list =
      OrRefuse(bench::ParseModuleArguments(OrRefuse(ReadTextFile(arguments.module_arguments))));
  std::shared_ptr<bench::ModuleStep> step = OrRefuse(bench::ModuleStep::Make(
      client, arguments.shape, OrRefuse(ReadTextFile(arguments.module)), list));
  return [step] { return OrRefuse(step->Run()); };
}

int Main(int argc, char** argv) {
  Arguments arguments;
  FlagParser parser({.name = "troupe-bench-xla",
                     .usage = "troupe-bench-xla [FLAG …]",
                     .summary = "Measures a whole training step of one rank on a device of XLA. "
                                "Prints a JSON line with the seconds of compilation and \"ready\", "
                                "then runs one step per line of standard input and prints its "
                                "seconds, those outside of programs, the loss, and the seconds of "
                                "each program."});
  AddFlags(parser, &arguments);
  if (const std::optional<int> ended = parser.ParseMain(argc, argv)) return *ended;
  OrRefuse(bench::ConfigOf(arguments.shape.model));
  auto* const plugin = OrRefuse(kernels::xla::Client::Make(OrRefuse(kernels::xla::FindPlugin("")),
                                                           arguments.shape.threads))
                           .release();  // lives until the process ends
  auto* const client = new bench::TimedClient(*plugin);
  const auto step = StepOf(arguments, *client);
  const double loss = step();
  fmt::print("{{\"compile_seconds\": {:.3f}, \"programs\": {}, \"loss\": {:.6f}}}\nready\n",
             client->times().compile_seconds, client->times().run_seconds.size(), loss);
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<double> before = client->times().run_seconds;
    const double start = bench::Now();
    const double step_loss = step();
    const double seconds = bench::Now() - start;
    double inside = 0;
    std::string programs;
    for (size_t p = 0; p < before.size(); ++p) {
      const double spent = client->times().run_seconds[p] - before[p];
      inside += spent;
      programs += fmt::format(" {:.6f}", spent);
    }
    fmt::print("{:.6f} {:.6f} {:.6f}{}\n", seconds, seconds - inside, step_loss, programs);
    std::fflush(stdout);
  }
  // The plugin's threads may still run.
  std::fflush(stdout);
  std::_Exit(0);
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) { return troupe::Main(argc, argv); }
