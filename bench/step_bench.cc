// Measures a whole training step of one rank (forward, backward, norm, clipping, AdamW) on random
// tokens, and the time of its matmuls alone in the same process.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/flag_parser.h"
#include "bench/program_bench.h"
#include "bench/training_step.h"
#include "kernels/cpu/cpu_backend.h"
#include "model/cost.h"

namespace troupe {
namespace {

using model::OpKind;

struct Arguments {
  bench::StepShape shape;
  int steps = 5;
  bool matmuls_alone = false, operations = false, on_request = false;
};

[[noreturn]] void Refuse(const std::string& message) {
  fmt::print(stderr, "troupe-bench-step: {}\n", message);
  std::exit(2);
}

bool IsMatmul(const model::Op& op) {
  return op.kind == OpKind::kMatmul || op.kind == OpKind::kMatmulGradInput ||
         op.kind == OpKind::kMatmulGradWeight;
}

void AddFlags(FlagParser& parser, Arguments* arguments) {
  bench::AddShapeFlags(parser, &arguments->shape);
  parser.AddNumber({"--steps", "N", "measured steps, and measured runs of the matmuls alone"},
                   {.least = 1}, &arguments->steps);
  parser.AddOptionalNumber({"--dropout", "PERCENT", "dropout, in percent (default: none)"},
                           {.least = 1}, &arguments->shape.dropout_percent);
  parser.AddSwitch({"--matmuls-alone", "", "measures only the matmuls"}, &arguments->matmuls_alone);
  parser.AddSwitch(
      {"--operations", "", "also prints the seconds of each kind of operation in one step"},
      &arguments->operations);
  bench::AddCpuTimeFlag(parser);
  parser.AddSwitch({"--on-request", "",
                    "prints \"ready\", then runs one step per line of standard input and prints "
                    "its seconds"},
                   &arguments->on_request);
}

int Main(int argc, char** argv) {
  Arguments arguments;
  FlagParser parser({.name = "troupe-bench-step",
                     .usage = "troupe-bench-step [FLAG …]",
                     .summary = "Measures a whole training step of one rank on random tokens, and "
                                "its matmuls alone; prints JSON lines with the medians."});
  AddFlags(parser, &arguments);
  if (const std::optional<int> ended = parser.ParseMain(argc, argv)) return *ended;
  if (auto config = bench::ConfigOf(arguments.shape.model); !config.ok())
    Refuse(ToString(config.status()));
  auto made = kernels::CpuBackend::Make({arguments.shape.threads, std::nullopt});
  if (!made.ok()) Refuse(ToString(made.status()));
  kernels::CpuBackend& backend = **made;
  bench::TrainingStep training(backend, arguments.shape);
  const double tokens = static_cast<double>(arguments.shape.batch * arguments.shape.sequence);
  if (arguments.on_request) {
    training.Run();
    fmt::print("ready\n");
    std::fflush(stdout);
    for (std::string line; std::getline(std::cin, line);) {
      const double start = bench::Now();
      training.Run();
      fmt::print("{:.6f}\n", bench::Now() - start);
      std::fflush(stdout);
    }
    return 0;
  }
  const std::string what = fmt::format(
      "\"model\": \"{}\", \"tokens\": \"{}x{}\", \"dtype\": \"{}\", \"threads\": {}, \"level\": "
      "\"{}\"",
      arguments.shape.model, arguments.shape.batch, arguments.shape.sequence, arguments.shape.dtype,
      arguments.shape.threads, backend.kernel_level());
  double step_rate = 0;
  if (!arguments.matmuls_alone) {
    std::vector<double> seconds;
    double loss = training.Run();
    for (int step = 0; step < arguments.steps; ++step) {
      const double start = bench::Now();
      loss = training.Run();
      seconds.push_back(bench::Now() - start);
    }
    step_rate = tokens / bench::Median(seconds);
    fmt::print(
        "{{\"bench\": \"step\", {}, \"tokens_per_second\": {:.1f}, \"seconds\": {:.4f}, "
        "\"gflops\": {:.1f}, "
        "\"loss\": {:.4f}, \"arena_bytes\": {}}}\n",
        what, step_rate, bench::Median(seconds),
        model::ModelFlops(training.program(), 0).total() / bench::Median(seconds) * 1e-9, loss,
        training.plan().total_bytes());
    std::fflush(stdout);
  }
  const double matmuls = tokens / bench::SecondsOf(backend, training, arguments.steps, IsMatmul);
  fmt::print("{{\"bench\": \"matmuls_alone\", {}, \"tokens_per_second\": {:.1f}", what, matmuls);
  if (step_rate > 0) fmt::print(", \"step_share\": {:.3f}", step_rate / matmuls);
  fmt::print("}}\n");
  if (arguments.operations) bench::PrintOperations(backend, training);
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) { return troupe::Main(argc, argv); }
