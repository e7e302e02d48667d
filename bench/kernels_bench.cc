// Measures every operation of a training step by itself, at the shapes of a model; prints one JSON
// line each.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/flag_parser.h"
#include "bench/program_bench.h"
#include "kernels/backend/program_part.h"
#include "kernels/cpu/cpu_backend.h"
#include "model/build.h"
#include "model/cost.h"
#include "model/program/memory_plan.h"

namespace troupe {
namespace {

using model::Piece;

struct Arguments {
  std::string model = "llama-124m", dtype, only;
  int64_t batch = 4, sequence = 256;
  int threads = 2;
};

[[noreturn]] void Refuse(const std::string& message) {
  fmt::print(stderr, "troupe-bench-kernels: {}\n", message);
  std::exit(2);
}

void AddFlags(FlagParser& parser, Arguments* arguments) {
  parser.AddText({"--model", "PRESET", "preset whose shapes are measured"}, &arguments->model);
  parser.AddNumber({"--batch", "SAMPLES", "samples in a microbatch"}, {.least = 1},
                   &arguments->batch);
  parser.AddNumber({"--sequence", "TOKENS", "tokens in a sample"}, {.least = 1},
                   &arguments->sequence);
  parser.AddNumber({"--threads", "N", "threads of the backend"}, {.least = 1}, &arguments->threads);
  parser.AddWord({"--dtype", "DTYPE", "compute dtype, float32 or bfloat16 (default: both)"},
                 {"float32", "bfloat16"}, &arguments->dtype);
  parser.AddText({"--only", "KIND", "only this kind of operation, such as attention_grad"},
                 &arguments->only);
  bench::AddCpuTimeFlag(parser);
}

// Returns the median of at least five runs, repeated for half a second or at most 199 runs.
double SecondsOf(kernels::Executable& executable, bool update) {
  std::vector<double> seconds;
  double total = 0;
  for (int run = 0; run < 6 || (total < 0.5 && run < 200); ++run) {
    const double start = bench::Now();
    const kernels::RunOptions options{.first_microbatch = true};
    TROUPE_CHECK_OK(update ? executable.RunUpdate()
                           : executable.Run(0, Piece::kForward, 0, options));
    if (run == 0) continue;  // warm-up
    seconds.push_back(bench::Now() - start);
    total += seconds.back();
  }
  return bench::Median(seconds);
}

void MeasureAll(const Arguments& arguments, kernels::CpuBackend& backend,
                const std::string& dtype) {
  auto config = bench::ConfigOf(arguments.model);
  if (!config.ok()) Refuse(ToString(config.status()));
  config->blocks = config->blocks.substr(0, 2);  // one block of each kind
  model::BuildOptions options;
  options.model = *config;
  options.chunks = {{0, 0, options.model.num_blocks(), true, true}};
  options.micro_batch_size = arguments.batch;
  options.sequence_length = arguments.sequence;
  options.compute_dtype = dtype == "bfloat16" ? model::DType::kBFloat16 : model::DType::kFloat32;
  auto program = model::BuildProgram(options);
  TROUPE_CHECK_OK(program.status());
  const model::MemoryPlan plan = model::PlanMemory(*program, {1}, false, arguments.threads);

  std::set<std::string> seen;
  const auto measure = [&](const model::Op& op, bool update) {
    const std::string name = fmt::format("\"kernel\": \"{}\", \"inputs\": \"{}\"",
                                         model::Name(op.kind), kernels::ShapesOf(op, *program));
    const bool wanted = arguments.only.empty() || arguments.only == model::Name(op.kind);
    if (!wanted || !kernels::IsOfOneRank(op.kind) || !seen.insert(name).second) return;
    model::Program single = kernels::OnlyOps(*program, [](const model::Op&) { return false; });
    (update ? single.update : single.ops[0][static_cast<int>(Piece::kForward)]).push_back(op);
    auto executable = backend.Prepare(single, plan, nullptr);
    TROUPE_CHECK_OK(executable.status());
    TROUPE_CHECK_OK(kernels::FillRandomly(**executable, single));
    const double seconds = SecondsOf(**executable, update);
    const double flops = model::ModelFlops(op, *program);
    fmt::print(
        "{{\"bench\": \"kernels\", {}, \"dtype\": \"{}\", \"threads\": {}, \"level\": \"{}\", "
        "\"seconds\": {:.6f}, ",
        name, dtype, arguments.threads, backend.kernel_level(), seconds);
    if (flops > 0) {
      fmt::print("\"gflops\": {:.1f}}}\n", flops / seconds * 1e-9);
    } else {
      fmt::print("\"gigabytes_per_second\": {:.1f}}}\n",
                 static_cast<double>(kernels::BytesTouched(op, *program)) / seconds * 1e-9);
    }
    std::fflush(stdout);
  };
  for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
    for (const model::Op& op : program->Ops(0, piece)) measure(op, false);
  }
  for (const model::Op& op : program->update) measure(op, true);
}

int Main(int argc, char** argv) {
  Arguments arguments;
  FlagParser parser({.name = "troupe-bench-kernels",
                     .usage = "troupe-bench-kernels [FLAG …]",
                     .summary = "Measures every operation of a training step by itself, at the "
                                "shapes of a model; prints one JSON line each."});
  AddFlags(parser, &arguments);
  if (const std::optional<int> ended = parser.ParseMain(argc, argv)) return *ended;
  auto backend = kernels::CpuBackend::Make({arguments.threads, std::nullopt});
  if (!backend.ok()) Refuse(ToString(backend.status()));
  for (const char* dtype : {"float32", "bfloat16"}) {
    if (arguments.dtype.empty() || arguments.dtype == dtype)
      MeasureAll(arguments, **backend, dtype);
  }
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) { return troupe::Main(argc, argv); }
