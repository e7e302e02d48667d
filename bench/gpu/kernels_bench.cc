// Measures speed on this machine's GPU and prints JSON lines: first the device's peak, then every
// kind of operation of a preset's blocks compared with it; or, with --train, training steps of the
// whole preset with Troupe's own plan and executor.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/file_system.h"
#include "base/flag_parser.h"
#include "bench/gpu/operations.h"
#include "kernels/cuda/libraries/cublaslt_library.h"
#include "kernels/cuda/libraries/cudnn_attention.h"
#include "kernels/cuda/libraries/device_attention.h"
#include "kernels/cuda/runtime/cuda_backend.h"
#include "kernels/cuda/runtime/cuda_device.h"
#include "tests/gpu/training.h"

namespace troupe {
namespace {

constexpr int kSkipped = 77;
constexpr int64_t kWarmUpSteps = 3;  // graph capture, first epochs of caches

struct Arguments {
  bool train = false;
  std::string only;
  int64_t device = 0;
  TrainingOptions training;
  std::optional<int64_t> micro_batch;
  kernels::cuda::CublasLtOptions matmuls;
};

[[noreturn]] void Refuse(const std::string& message) {
  fmt::print(stderr, "troupe-kernels-bench: {}\n", message);
  std::exit(2);
}

constexpr char kSummary[] =
    "Measures speed on this machine's GPU and prints JSON lines: the device's peak, and every kind "
    "of operation of a preset's blocks compared with it; or, with --train, training steps of the "
    "whole preset.";

void AddModelFlags(FlagParser& parser, Arguments* arguments) {
  TrainingOptions& training = arguments->training;
  parser.AddText({"--model", "PRESET", "preset whose operations are measured"}, &training.preset);
  parser.AddParsed({"--train", "PRESET", "trains this preset instead"},
                   [arguments](const std::string& value) {
                     arguments->train = true;
                     arguments->training.preset = value;
                     return OkStatus();
                   });
  parser.AddText(
      {"--pattern", "PATTERN", "with --train: blocks in place of the preset's, such as (AD)x2"},
      &training.pattern);
  parser.AddNumber({"--batch", "SAMPLES", "samples in a step"}, {.least = 1}, &training.batch);
  parser.AddOptionalNumber(
      {"--micro-batch", "SAMPLES", "with --train: samples in a microbatch (default: --batch)"},
      {.least = 1}, &arguments->micro_batch);
  parser.AddNumber({"--sequence", "TOKENS", "tokens in a sample"}, {.least = 1},
                   &training.sequence);
  parser.AddWord({"--dtype", "DTYPE", "compute dtype, float32 or bfloat16"},
                 {"float32", "bfloat16"}, &training.dtype);
  parser.AddText({"--float8", "RECIPE",
                  "none, current, delayed or blockwise, for the matmuls of linear layers; needs "
                  "bfloat16"},
                 &training.float8);
}

void AddRunFlags(FlagParser& parser, Arguments* arguments) {
  TrainingOptions& training = arguments->training;
  parser.AddNumber({"--steps", "N", "with --train: steps"}, {.least = 1}, &training.steps);
  parser.AddNumber({"--lr", "RATE", "with --train: learning rate"}, {.least = 0},
                   &training.learning_rate);
  parser.AddNumber({"--seed", "N", "with --train: seed"}, {.least = 0}, &training.seed);
  parser.AddText({"--data", "PATH",
                  "with --train: data, as data.train of a job file (default: synthetic tokens)"},
                 &training.data);
  parser.AddText(
      {"--only", "KIND", "without --train: only this kind of operation, such as attention_grad"},
      &arguments->only);
  parser.AddNumber({"--device", "N", "index of the GPU"}, {.least = 0}, &arguments->device);
  parser.AddText({"--tuning-cache", "DIRECTORY",
                  "tuning cache for matmuls and attention (default: tunes in each run)"},
                 &arguments->matmuls.tuning_cache_folder);
  parser.AddParsed({"--no-tuning", "", "uses the libraries' first proposals"},
                   [arguments](const std::string&) {
                     arguments->matmuls.tune = false;
                     return OkStatus();
                   });
}

OperationsOptions OptionsOf(const Arguments& arguments) {
  const TrainingOptions& training = arguments.training;
  return {.preset = training.preset,
          .batch = training.batch,
          .sequence = training.sequence,
          .dtype = training.dtype,
          .float8 = training.float8,
          .only = arguments.only};
}

// Compares cuDNN's attention with our own kernels, where both exist.
Status BenchAttention(kernels::cuda::CudaDevice& device, const Arguments& arguments) {
  if (!arguments.only.empty() && !arguments.only.starts_with("attention")) return OkStatus();
  const auto cudnn = kernels::cuda::MakeCudnnAttention(device, {});
  if (!cudnn.ok()) {
    fmt::print("{{\"bench\": \"attention\", \"skipped\": \"{}\"}}\n", Message(cudnn.status()));
    return OkStatus();
  }
  return MeasureAttention(
      device, *cudnn->library, OptionsOf(arguments), [](const AttentionTime& time) {
        fmt::print(
            "{{\"bench\": \"attention\", \"pass\": \"{}\", \"shape\": \"{}\", \"library\": \"{}\", "
            "\"library_seconds\": {:.7f}, \"own_seconds\": {:.7f}}}\n",
            time.pass, time.shape, time.implementation, time.seconds.library, time.seconds.own);
        std::fflush(stdout);
      });
}

Status BenchOperations(kernels::cuda::CudaDevice& device, kernels::cuda::MatmulLibrary& matmuls,
                       kernels::CudaBackend& backend, const Arguments& arguments) {
  const TrainingOptions& training = arguments.training;
  TROUPE_ASSIGN_OR_RETURN(const DevicePeak peak,
                          MeasurePeak(device, matmuls, training.dtype == "bfloat16"));
  fmt::print(
      "{{\"bench\": \"device\", \"device\": \"{}\", \"dtype\": \"{}\", "
      "\"copy_gigabytes_per_second\": {:.1f}, "
      "\"matmul_teraflops\": {:.1f}}}\n",
      device.description(), training.dtype, peak.bytes_per_second * 1e-9, peak.flops * 1e-12);
  std::fflush(stdout);
  TROUPE_RETURN_IF_ERROR(BenchAttention(device, arguments));
  return MeasureOperations(device, backend, OptionsOf(arguments), [&](const OperationTime& time) {
    fmt::print(
        "{{\"bench\": \"kernels\", \"kernel\": \"{}\", \"inputs\": \"{}\", \"dtype\": \"{}\", ",
        time.kind, time.inputs, training.dtype);
    if (!time.skipped.empty()) {
      fmt::print("\"skipped\": \"{}\"}}\n", time.skipped);
    } else if (time.flops > 0) {
      fmt::print("\"seconds\": {:.7f}, \"teraflops\": {:.2f}, \"share_of_matmul\": {:.3f}}}\n",
                 time.seconds, time.flops / time.seconds * 1e-12,
                 time.flops / time.seconds / peak.flops);
    } else {
      fmt::print(
          "\"seconds\": {:.7f}, \"gigabytes_per_second\": {:.1f}, \"share_of_copy\": {:.3f}}}\n",
          time.seconds, time.bytes / time.seconds * 1e-9,
          time.bytes / time.seconds / peak.bytes_per_second);
    }
    std::fflush(stdout);
  });
}

Status BenchTraining(FileSystem& files, kernels::CudaBackend& backend,
                     const TrainingOptions& options) {
  std::vector<double> seconds;
  TrainingStep last;
  TROUPE_RETURN_IF_ERROR(Train(backend, files, options, [&](const TrainingStep& step) {
    fmt::print(
        "{{\"bench\": \"train_step\", \"step\": {}, \"loss\": {:.6f}, \"grad_norm\": {:.6f}, "
        "\"seconds\": "
        "{:.6f}, \"tokens_per_second\": {:.0f}}}\n",
        step.step, step.loss, step.grad_norm, step.seconds,
        static_cast<double>(step.tokens) / step.seconds);
    std::fflush(stdout);
    if (step.step > kWarmUpSteps) seconds.push_back(step.seconds);
    last = step;
  }));
  for (const std::string& fallback : backend.fallbacks()) {
    fmt::print(stderr, "troupe-kernels-bench: falls back: {}\n", fallback);
  }
  if (seconds.empty()) return OkStatus();
  std::ranges::sort(seconds);
  const double median = seconds[seconds.size() / 2];
  fmt::print(
      "{{\"bench\": \"train\", \"model\": \"{}\", \"pattern\": \"{}\", \"tokens\": \"{}x{}\", "
      "\"dtype\": \"{}\", "
      "\"float8\": \"{}\", \"level\": \"{}\", \"steps\": {}, \"seconds\": {:.6f}, "
      "\"tokens_per_second\": {:.0f}, "
      "\"model_teraflops\": {:.2f}, \"loss\": {:.6f}, \"fallbacks\": {}}}\n",
      options.preset, options.pattern.empty() ? "its own" : options.pattern, options.batch,
      options.sequence, options.dtype, options.float8, backend.kernel_level(), seconds.size(),
      median, static_cast<double>(last.tokens) / median, last.flops / median * 1e-12, last.loss,
      backend.fallbacks().size());
  return OkStatus();
}

int Main(int argc, char** argv) {
  Arguments arguments;
  arguments.training.devices = "cuda";
  FlagParser parser(
      {.name = "troupe-kernels-bench",
       .usage = "troupe-kernels-bench [--model PRESET] [FLAG …]\n"
                "       troupe-kernels-bench --train PRESET [FLAG …]",
       .summary = kSummary,
       .footer = "Exit codes: 0 done, 2 failed or wrong usage, 77 no GPU can be used."});
  AddModelFlags(parser, &arguments);
  AddRunFlags(parser, &arguments);
  if (const std::optional<int> ended = parser.ParseMain(argc, argv)) return *ended;
  arguments.training.micro_batch = arguments.micro_batch.value_or(arguments.training.batch);
  PosixFileSystem files;
  auto device = kernels::cuda::CudaDevice::Make(static_cast<int>(arguments.device), {});
  if (!device.ok()) {
    fmt::print("troupe-kernels-bench: skipped, nothing was measured: {}\n",
               ToString(device.status()));
    return kSkipped;
  }
  auto matmuls = kernels::cuda::CublasLtLibrary::Make(**device, files, arguments.matmuls);
  if (!matmuls.ok()) Refuse(ToString(matmuls.status()));
  auto cudnn = kernels::cuda::DeviceAttention::Make(
      **device, files,
      {.tune = arguments.matmuls.tune,
       .tuning_cache_folder = arguments.matmuls.tuning_cache_folder});
  const auto attention = cudnn.ok() ? *std::move(cudnn) : nullptr;
  const std::string absence(cudnn.ok() ? "" : Message(cudnn.status()));
  kernels::CudaBackend backend(
      **device,
      {.matmuls = matmuls->get(), .attention = attention.get(), .attention_absence = absence},
      nullptr);
  const Status status = arguments.train ? BenchTraining(files, backend, arguments.training)
                                        : BenchOperations(**device, **matmuls, backend, arguments);
  if (!status.ok()) Refuse(ToString(status));
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) { return troupe::Main(argc, argv); }
