// Measures a whole training step of one rank (forward, backward, norm, clipping, AdamW) on random
// tokens, and the time of its matmuls alone in the same process.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/flag_parser.h"
#include "base/random.h"
#include "base/sample_schema.h"
#include "bench/program_bench.h"
#include "kernels/backend/program_part.h"
#include "kernels/cpu/cpu_backend.h"
#include "model/build.h"
#include "model/cost.h"
#include "model/initialize.h"
#include "model/program/control_word.h"
#include "model/program/memory_plan.h"

namespace troupe {
namespace {

using model::OpKind;
using model::Piece;

struct Arguments {
  std::string model = "llama-124m";
  int64_t batch = 4, sequence = 256;
  std::string dtype = "float32";
  int threads = 2, steps = 5;
  std::optional<int> dropout_percent;
  bool matmuls_alone = false, operations = false, on_request = false;
};

[[noreturn]] void Refuse(const std::string& message) {
  fmt::print(stderr, "troupe-bench-step: {}\n", message);
  std::exit(2);
}

model::ModelConfig ConfigOf(const std::string& name) {
  auto config = bench::ConfigOf(name);
  if (!config.ok()) Refuse(ToString(config.status()));
  return *config;
}

bool IsMatmul(const model::Op& op) {
  return op.kind == OpKind::kMatmul || op.kind == OpKind::kMatmulGradInput ||
         op.kind == OpKind::kMatmulGradWeight;
}

// One rank's program with parameters from a seed and random tokens.
class Training {
 public:
  Training(kernels::CpuBackend& backend, const Arguments& arguments) {
    model::BuildOptions options;
    options.model = ConfigOf(arguments.model);
    options.model.hidden_dropout = arguments.dropout_percent.value_or(0) / 100.0;
    options.chunks = {{0, 0, options.model.num_blocks(), true, true}};
    options.micro_batch_size = arguments.batch;
    options.sequence_length = arguments.sequence;
    options.compute_dtype =
        arguments.dtype == "bfloat16" ? model::DType::kBFloat16 : model::DType::kFloat32;
    auto program = model::BuildProgram(options);
    TROUPE_CHECK_OK(program.status());
    program_ = std::move(*program);
    plan_ = model::PlanMemory(program_, {1}, false, arguments.threads);
    executable_ = Prepared(backend, program_);
    FillParameters();
    FillSamples(options.model.vocab_size, arguments.sequence);
    samples_.resize(2 * arguments.batch);
  }

  // Runs one step and returns the mean loss.
  double Step() {
    ++step_;
    double totals[2] = {0, 0};
    Write(program_.loss_totals, totals, sizeof(totals));
    if (const model::ValueId samples = program_.chunks[0].Input(channels::kSlots);
        samples != model::kNoValue) {
      for (size_t i = 0; i < samples_.size(); ++i) {
        samples_[i] = i % 2 == 0 ? step_ : static_cast<int32_t>(i / 2);
      }
      Write(samples, samples_.data(), samples_.size() * sizeof(int32_t));
    }
    const kernels::RunOptions options{.first_microbatch = true};
    for (const Piece piece : {Piece::kUnshard, Piece::kForward, Piece::kBackward, Piece::kReduce}) {
      TROUPE_CHECK_OK(executable_->Run(0, piece, 0, options));
    }
    const double control[model::kControlLanes] = {};
    Write(program_.control_word, control, sizeof(control));
    const float learning_rate = 3e-4f;
    Write(program_.learning_rate, &learning_rate, sizeof(learning_rate));
    TROUPE_CHECK_OK(executable_->RunUpdate());
    TROUPE_CHECK_OK(
        executable_->Read(program_.loss_totals, 0, std::as_writable_bytes(std::span(totals))));
    return totals[0] / totals[1];
  }

  // Times the program reduced to the ops that `keep` selects, in separate memory with random
  // contents.
  double SecondsOf(kernels::CpuBackend& backend, int runs, const kernels::KeepOp& keep) {
    const model::Program reduced = kernels::OnlyOps(program_, keep);
    const std::unique_ptr<kernels::Executable> executable = Prepared(backend, reduced);
    TROUPE_CHECK_OK(kernels::FillRandomly(*executable, reduced));
    std::vector<double> seconds;
    for (int run = 0; run <= runs; ++run) {  // the first run is warm-up
      const double start = bench::Now();
      const kernels::RunOptions options{.first_microbatch = true};
      TROUPE_CHECK_OK(executable->Run(0, Piece::kForward, 0, options));
      TROUPE_CHECK_OK(executable->Run(0, Piece::kBackward, 0, options));
      TROUPE_CHECK_OK(executable->RunUpdate());
      if (run > 0) seconds.push_back(bench::Now() - start);
    }
    return bench::Median(seconds);
  }

  double flops() const { return model::ModelFlops(program_, 0).total(); }
  const model::Program& program() const { return program_; }
  const model::MemoryPlan& plan() const { return plan_; }

 private:
  std::unique_ptr<kernels::Executable> Prepared(kernels::CpuBackend& backend,
                                                const model::Program& program) {
    auto executable = backend.Prepare(program, plan_, nullptr);
    TROUPE_CHECK_OK(executable.status());
    return std::move(*executable);
  }

  void Write(model::ValueId value, const void* data, size_t bytes) {
    TROUPE_CHECK_OK(executable_->Write(value, 0, {static_cast<const std::byte*>(data), bytes}));
  }

  void FillParameters() {
    for (const model::ParameterEntry& entry : program_.parameters) {
      const model::Value& value = program_.value(entry.value);
      auto* out = static_cast<float*>(executable_->Address(entry.value, 0));
      for (const model::ParameterPart& part : entry.parts) {
        int64_t count = 1;
        for (const int64_t extent : part.local_shape) count *= extent;
        const int64_t begin = part.row_begin * (value.elements() / value.dims[0].local);
        model::FillInitial(1, entry, part, 0, {out + begin, static_cast<size_t>(count)});
      }
    }
    TROUPE_CHECK_OK(executable_->RunInitialize());
  }

  void FillSamples(int64_t vocabulary, int64_t sequence) {
    const model::ChunkInterface& chunk = program_.chunks[0];
    const int64_t rows = program_.value(chunk.Input(channels::kTokens)).elements();
    std::vector<int32_t> tokens(rows), targets(rows), positions(rows);
    const std::vector<float> weights(rows, 1.0f);
    for (int64_t r = 0; r < rows; ++r) {
      tokens[r] = static_cast<int32_t>(UniformBits(1, 2 * r) % vocabulary);
      targets[r] = static_cast<int32_t>(UniformBits(1, 2 * r + 1) % vocabulary);
      positions[r] = static_cast<int32_t>(r % sequence);
    }
    Write(chunk.Input(channels::kTokens), tokens.data(), rows * sizeof(int32_t));
    Write(chunk.Input(channels::kTargets), targets.data(), rows * sizeof(int32_t));
    Write(chunk.Input(channels::kPositions), positions.data(), rows * sizeof(int32_t));
    Write(chunk.Input(channels::kWeights), weights.data(), rows * sizeof(float));
  }

  model::Program program_;
  model::MemoryPlan plan_;
  std::unique_ptr<kernels::Executable> executable_;
  std::vector<int32_t> samples_;  // step and slot of each sample, for dropout
  int step_ = 0;
};

void AddFlags(FlagParser& parser, Arguments* arguments) {
  parser.AddText({"--model", "PRESET", "preset of the model"}, &arguments->model);
  parser.AddNumber({"--batch", "SAMPLES", "samples in a step"}, {.least = 1}, &arguments->batch);
  parser.AddNumber({"--sequence", "TOKENS", "tokens in a sample"}, {.least = 1},
                   &arguments->sequence);
  parser.AddNumber({"--threads", "N", "threads of the backend"}, {.least = 1}, &arguments->threads);
  parser.AddWord({"--dtype", "DTYPE", "compute dtype, float32 or bfloat16"},
                 {"float32", "bfloat16"}, &arguments->dtype);
  parser.AddNumber({"--steps", "N", "measured steps, and measured runs of the matmuls alone"},
                   {.least = 1}, &arguments->steps);
  parser.AddOptionalNumber({"--dropout", "PERCENT", "dropout, in percent (default: none)"},
                           {.least = 1}, &arguments->dropout_percent);
  parser.AddSwitch({"--matmuls-alone", "", "measures only the matmuls"}, &arguments->matmuls_alone);
  parser.AddSwitch(
      {"--operations", "", "also prints the seconds of each kind of operation in one step"},
      &arguments->operations);
  parser.AddParsed(
      {"--cpu-time", "",
       "measures CPU time instead of wall-clock time: for one thread on a busy machine"},
      [](const std::string&) {
        bench::timing_clock = CLOCK_PROCESS_CPUTIME_ID;
        return OkStatus();
      });
  parser.AddSwitch({"--on-request", "",
                    "prints \"ready\", then runs one step per line of standard input and prints "
                    "its seconds"},
                   &arguments->on_request);
}

// Prints the seconds of each kind of operation; the ops of one kind run one after another, alone.
void PrintOperations(kernels::CpuBackend& backend, Training& training) {
  std::map<OpKind, int> kinds;
  for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
    for (const model::Op& op : training.program().Ops(0, piece)) ++kinds[op.kind];
  }
  for (const model::Op& op : training.program().update) ++kinds[op.kind];
  for (const auto& [kind, count] : kinds) {
    const double seconds = training.SecondsOf(
        backend, 3, [kind = kind](const model::Op& op) { return op.kind == kind; });
    fmt::print(
        "{{\"bench\": \"step_operations\", \"kind\": \"{}\", \"ops\": {}, \"seconds\": {:.5f}}}\n",
        model::Name(kind), count, seconds);
  }
}

int Main(int argc, char** argv) {
  Arguments arguments;
  FlagParser parser({.name = "troupe-bench-step",
                     .usage = "troupe-bench-step [FLAG …]",
                     .summary = "Measures a whole training step of one rank on random tokens, and "
                                "its matmuls alone; prints JSON lines with the medians."});
  AddFlags(parser, &arguments);
  if (const std::optional<int> ended = parser.ParseMain(argc, argv)) return *ended;
  auto made = kernels::CpuBackend::Make({arguments.threads, std::nullopt});
  if (!made.ok()) Refuse(ToString(made.status()));
  kernels::CpuBackend& backend = **made;
  Training training(backend, arguments);
  const double tokens = static_cast<double>(arguments.batch * arguments.sequence);
  if (arguments.on_request) {
    training.Step();
    fmt::print("ready\n");
    std::fflush(stdout);
    for (std::string line; std::getline(std::cin, line);) {
      const double start = bench::Now();
      training.Step();
      fmt::print("{:.6f}\n", bench::Now() - start);
      std::fflush(stdout);
    }
    return 0;
  }
  const std::string what = fmt::format(
      "\"model\": \"{}\", \"tokens\": \"{}x{}\", \"dtype\": \"{}\", \"threads\": {}, \"level\": "
      "\"{}\"",
      arguments.model, arguments.batch, arguments.sequence, arguments.dtype, arguments.threads,
      backend.kernel_level());
  double step_rate = 0;
  if (!arguments.matmuls_alone) {
    std::vector<double> seconds;
    double loss = training.Step();
    for (int step = 0; step < arguments.steps; ++step) {
      const double start = bench::Now();
      loss = training.Step();
      seconds.push_back(bench::Now() - start);
    }
    step_rate = tokens / bench::Median(seconds);
    fmt::print(
        "{{\"bench\": \"step\", {}, \"tokens_per_second\": {:.1f}, \"seconds\": {:.4f}, "
        "\"gflops\": {:.1f}, "
        "\"loss\": {:.4f}, \"arena_bytes\": {}}}\n",
        what, step_rate, bench::Median(seconds), training.flops() / bench::Median(seconds) * 1e-9,
        loss, training.plan().total_bytes());
    std::fflush(stdout);
  }
  const double matmuls = tokens / training.SecondsOf(backend, arguments.steps, IsMatmul);
  fmt::print("{{\"bench\": \"matmuls_alone\", {}, \"tokens_per_second\": {:.1f}", what, matmuls);
  if (step_rate > 0) fmt::print(", \"step_share\": {:.3f}", step_rate / matmuls);
  fmt::print("}}\n");
  if (arguments.operations) PrintOperations(backend, training);
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) { return troupe::Main(argc, argv); }
