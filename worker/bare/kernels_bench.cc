// Measures speed on this machine's GPU and prints JSON lines: first the device's peak, then every
// kind of operation of a preset's blocks compared with it; or, with --train, training steps of the
// whole preset with the product's own plan and executor.
//
//   troupe-kernels-bench [--model llama-124m] [--batch 64] [--sequence 1024]
//     [--dtype bfloat16|float32]
//     [--only KIND]            such as attention_grad; absent: all
//   troupe-kernels-bench --train PRESET [--batch 64] [--micro-batch 64] [--sequence 1024]
//     [--dtype bfloat16|float32]
//     [--pattern PATTERN]      such as (AD)x2, in place of the preset's
//     [--steps 20] [--lr 0.0003] [--seed 1234]
//     [--data PATH]            as data.train of a job file; absent: synthetic tokens
//   both: [--float8 none|current|delayed|blockwise]  for matmuls of linear layers; needs bfloat16
//         [--device 0]
//         [--choices DIRECTORY]  tuning cache for matmuls and attention; absent: tunes each run
//         [--no-tuning]        uses the libraries' first proposals
//
// Exits with 77 and the reason if no GPU can be used.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/file_system.h"
#include "kernels/cuda/cublaslt_library.h"
#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cudnn_attention.h"
#include "kernels/cuda/device_attention.h"
#include "worker/bare/operations.h"
#include "worker/bare/training.h"

namespace troupe {
namespace {

constexpr int kSkipped = 77;
constexpr int64_t kWarmUpSteps = 3;  // graph capture, first epochs of caches

struct Arguments {
  bool train = false;
  std::string only;
  int64_t device = 0;
  TrainingOptions training;
  bool has_micro_batch = false;
  kernels::cuda::CublasLtOptions products;
};

[[noreturn]] void Refuse(const std::string& message) {
  fmt::print(stderr, "troupe-kernels-bench: {}\n", message);
  std::exit(2);
}

template <typename Number>
Number ParseNumber(const std::string& flag, const std::string& text, Number least) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least) {
    Refuse(fmt::format("{} is {}, must be a number of at least {}", flag, text, least));
  }
  return number;
}

Arguments Parse(int argc, char** argv) {
  Arguments arguments;
  TrainingOptions& training = arguments.training;
  training.devices = "cuda";
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--no-tuning") {
      arguments.products.tune = false;
      continue;
    }
    if (i + 1 == argc) Refuse(flag + " needs a value");
    const std::string value = argv[++i];
    if (flag == "--train" || flag == "--model") {
      arguments.train = arguments.train || flag == "--train";
      training.preset = value;
    } else if (flag == "--dtype") {
      if (value != "float32" && value != "bfloat16") Refuse("--dtype must be float32 or bfloat16");
      training.dtype = value;
    } else if (flag == "--float8") {
      training.float8 = value;
    } else if (flag == "--pattern") {
      training.pattern = value;
    } else if (flag == "--only") {
      arguments.only = value;
    } else if (flag == "--data") {
      training.data = value;
    } else if (flag == "--choices") {
      arguments.products.choices_folder = value;
    } else if (flag == "--lr") {
      training.learning_rate = ParseNumber<double>(flag, value, 0);
    } else if (flag == "--device") {
      arguments.device = ParseNumber<int64_t>(flag, value, 0);
    } else if (flag == "--batch") {
      training.batch = ParseNumber<int64_t>(flag, value, 1);
    } else if (flag == "--micro-batch") {
      training.micro_batch = ParseNumber<int64_t>(flag, value, 1);
      arguments.has_micro_batch = true;
    } else if (flag == "--sequence") {
      training.sequence = ParseNumber<int64_t>(flag, value, 1);
    } else if (flag == "--steps") {
      training.steps = ParseNumber<int64_t>(flag, value, 1);
    } else if (flag == "--seed") {
      training.seed = static_cast<uint64_t>(ParseNumber<int64_t>(flag, value, 0));
    } else {
      Refuse("unknown flag " + flag);
    }
  }
  if (!arguments.has_micro_batch) training.micro_batch = training.batch;
  return arguments;
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
  return MeasureAttention(device, *cudnn->library, OptionsOf(arguments), [](const AttentionTime& time) {
    fmt::print("{{\"bench\": \"attention\", \"pass\": \"{}\", \"shape\": \"{}\", \"library\": \"{}\", "
               "\"library_seconds\": {:.7f}, \"own_seconds\": {:.7f}}}\n",
               time.pass, time.shape, time.implementation, time.seconds.library, time.seconds.own);
    std::fflush(stdout);
  });
}

Status BenchOperations(kernels::cuda::CudaDevice& device, kernels::cuda::ProductLibrary& products,
                       kernels::CudaBackend& backend, const Arguments& arguments) {
  const TrainingOptions& training = arguments.training;
  TROUPE_ASSIGN_OR_RETURN(const DevicePeak peak, MeasurePeak(device, products, training.dtype == "bfloat16"));
  fmt::print("{{\"bench\": \"device\", \"device\": \"{}\", \"dtype\": \"{}\", \"copy_gigabytes_per_second\": {:.1f}, "
             "\"product_teraflops\": {:.1f}}}\n",
             device.description(), training.dtype, peak.bytes_per_second * 1e-9, peak.flops * 1e-12);
  std::fflush(stdout);
  TROUPE_RETURN_IF_ERROR(BenchAttention(device, arguments));
  return MeasureOperations(device, backend, OptionsOf(arguments), [&](const OperationTime& time) {
    fmt::print("{{\"bench\": \"kernels\", \"kernel\": \"{}\", \"inputs\": \"{}\", \"dtype\": \"{}\", ", time.kind,
               time.inputs, training.dtype);
    if (!time.skipped.empty()) {
      fmt::print("\"skipped\": \"{}\"}}\n", time.skipped);
    } else if (time.flops > 0) {
      fmt::print("\"seconds\": {:.7f}, \"teraflops\": {:.2f}, \"share_of_product\": {:.3f}}}\n", time.seconds,
                 time.flops / time.seconds * 1e-12, time.flops / time.seconds / peak.flops);
    } else {
      fmt::print("\"seconds\": {:.7f}, \"gigabytes_per_second\": {:.1f}, \"share_of_copy\": {:.3f}}}\n", time.seconds,
                 time.bytes / time.seconds * 1e-9, time.bytes / time.seconds / peak.bytes_per_second);
    }
    std::fflush(stdout);
  });
}

Status BenchTraining(FileSystem& files, kernels::CudaBackend& backend, const TrainingOptions& options) {
  std::vector<double> seconds;
  TrainingStep last;
  TROUPE_RETURN_IF_ERROR(Train(backend, files, options, [&](const TrainingStep& step) {
    fmt::print("{{\"bench\": \"train_step\", \"step\": {}, \"loss\": {:.6f}, \"grad_norm\": {:.6f}, \"seconds\": "
               "{:.6f}, \"tokens_per_second\": {:.0f}}}\n",
               step.step, step.loss, step.grad_norm, step.seconds, static_cast<double>(step.tokens) / step.seconds);
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
  fmt::print("{{\"bench\": \"train\", \"model\": \"{}\", \"pattern\": \"{}\", \"tokens\": \"{}x{}\", \"dtype\": \"{}\", "
             "\"float8\": \"{}\", \"level\": \"{}\", \"steps\": {}, \"seconds\": {:.6f}, \"tokens_per_second\": {:.0f}, "
             "\"model_teraflops\": {:.2f}, \"loss\": {:.6f}, \"fallbacks\": {}}}\n",
             options.preset, options.pattern.empty() ? "its own" : options.pattern, options.batch, options.sequence,
             options.dtype, options.float8, backend.kernel_level(), seconds.size(), median,
             static_cast<double>(last.tokens) / median, last.flops / median * 1e-12, last.loss,
             backend.fallbacks().size());
  return OkStatus();
}

int Main(int argc, char** argv) {
  const Arguments arguments = Parse(argc, argv);
  PosixFileSystem files;
  auto device = kernels::cuda::CudaDevice::Make(static_cast<int>(arguments.device), {});
  if (!device.ok()) {
    fmt::print("troupe-kernels-bench: skipped, nothing was measured: {}\n", ToString(device.status()));
    return kSkipped;
  }
  auto products = kernels::cuda::CublasLtLibrary::Make(**device, files, arguments.products);
  if (!products.ok()) Refuse(ToString(products.status()));
  auto cudnn = kernels::cuda::DeviceAttention::Make(
      **device, files, {.tune = arguments.products.tune, .choices_folder = arguments.products.choices_folder});
  const auto attention = cudnn.ok() ? *std::move(cudnn) : nullptr;
  const std::string absence(cudnn.ok() ? "" : Message(cudnn.status()));
  kernels::CudaBackend backend(**device,
                               {.products = products->get(),
                                .attention = attention.get(),
                                .attention_absence = absence},
                               nullptr);
  const Status status = arguments.train ? BenchTraining(files, backend, arguments.training)
                                        : BenchOperations(**device, **products, backend, arguments);
  if (!status.ok()) Refuse(ToString(status));
  return 0;
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) { return troupe::Main(argc, argv); }
