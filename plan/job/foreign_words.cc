#include "plan/job/foreign_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace troupe {
namespace {

constexpr std::string_view kOptimizerKey = "optimizer.name";
constexpr std::string_view kDevicesKey = "devices";
constexpr std::string_view kComputeDtypeKey = "training.compute_dtype";
constexpr std::string_view kDecayKey = "lr_schedule.decay_type";
constexpr std::string_view kRecomputationKey = "activation_recomputation.mode";
constexpr std::string_view kScheduleKey = "parallelism.pipeline_parallel_schedule";
constexpr std::string_view kContextMethodKey = "parallelism.context_parallel_method";
constexpr std::string_view kDispatchKey = "parallelism.expert_dispatch";
constexpr std::string_view kAsyncModeKey = "checkpoint.async_mode";
constexpr std::string_view kOnNonfiniteKey = "training.on_nonfinite";

constexpr std::string_view kNoDecay = "optimizer.weight_decay: 0 makes it Adam";
constexpr std::string_view kNoFloat16 = "no job trains in float16: bfloat16 needs no loss scale";

constexpr ForeignWord kForeignWords[] = {
    {kOptimizerKey, "adam", "adamw", kNoDecay},
    {kOptimizerKey, "adam_w", "adamw", ""},
    {kOptimizerKey, "adamw_torch", "adamw", ""},
    {kOptimizerKey, "adamw_torch_fused", "adamw", ""},
    {kOptimizerKey, "adamw_hf", "adamw", ""},
    {kOptimizerKey, "fused_adam", "adamw", kNoDecay},
    {kOptimizerKey, "fusedadam", "adamw", kNoDecay},
    {kOptimizerKey, "torch.optim.sgd", "sgd", ""},
    {kOptimizerKey, "fused_sgd", "sgd", ""},
    {kDevicesKey, "gpu", "cuda", ""},
    {kDevicesKey, "gpus", "cuda", ""},
    {kDevicesKey, "nvidia", "cuda", ""},
    {kDevicesKey, "cuda:0", "cuda", "the degrees in parallelism are the number of devices"},
    {kDevicesKey, "tpu", "xla", ""},
    {kDevicesKey, "tpus", "xla", ""},
    {kDevicesKey, "cpus", "cpu", ""},
    {kDevicesKey, "processor", "cpu", ""},
    {"", "bf16", "bfloat16", ""},
    {"", "torch.bfloat16", "bfloat16", ""},
    {"", "bf16_mixed", "bfloat16", ""},
    {"", "bf16_true", "bfloat16", ""},
    {"", "fp32", "float32", ""},
    {"", "f32", "float32", ""},
    {"", "float", "float32", ""},
    {"", "torch.float32", "float32", ""},
    {"model.export_dtype", "fp16", "float16", ""},
    {"model.export_dtype", "half", "float16", ""},
    {"model.export_dtype", "torch.float16", "float16", ""},
    {kComputeDtypeKey, "fp16", "", kNoFloat16},
    {kComputeDtypeKey, "float16", "", kNoFloat16},
    {kComputeDtypeKey, "half", "", kNoFloat16},
    {kComputeDtypeKey, "fp8", "", "training.float8.recipe is for FP8"},
    {kDecayKey, "cosine_annealing", "cosine", ""},
    {kDecayKey, "cosineannealing", "cosine", ""},
    {kDecayKey, "cosineannealinglr", "cosine", ""},
    {kDecayKey, "cosine_decay", "cosine", ""},
    {kDecayKey, "cosine_with_warmup", "cosine", "lr_schedule.warmup_steps warms up"},
    {kDecayKey, "linear_decay", "linear", ""},
    {kDecayKey, "linear_with_warmup", "linear", "lr_schedule.warmup_steps warms up"},
    {kDecayKey, "constant_with_warmup", "constant", "lr_schedule.warmup_steps warms up"},
    {kDecayKey, "none", "constant", ""},
    {kDecayKey, "warmup_stable_decay", "wsd", ""},
    {kDecayKey, "inverse_square_root", "inverse_sqrt", ""},
    {kDecayKey, "rsqrt", "inverse_sqrt", ""},
    {kRecomputationKey, "true", "full", ""},
    {kRecomputationKey, "false", "none", ""},
    {kRecomputationKey, "uniform", "full", ""},
    {kRecomputationKey, "block", "full", ""},
    {kScheduleKey, "interleaved", "Interleaved1F1B", ""},
    {kScheduleKey, "interleaved_1f1b", "Interleaved1F1B", ""},
    {kScheduleKey, "zero_bubble", "ZBH1", "or ZBV, with two chunks on each rank"},
    {kScheduleKey, "zerobubble", "ZBH1", "or ZBV, with two chunks on each rank"},
    {kScheduleKey, "dualpipe", "DualPipeV", ""},
    {kContextMethodKey, "ulysses", "all_to_all", ""},
    {kContextMethodKey, "a2a", "all_to_all", ""},
    {kContextMethodKey, "p2p", "ring", ""},
    {kContextMethodKey, "ring_attention", "ring", ""},
    {kDispatchKey, "alltoall", "all_to_all", ""},
    {kDispatchKey, "a2a", "all_to_all", ""},
    {kDispatchKey, "allgather", "all_gather", ""},
    {kAsyncModeKey, "true", "async", ""},
    {kAsyncModeKey, "async_with_pinned_mem", "async", ""},
    {kAsyncModeKey, "false", "disabled", ""},
    {kAsyncModeKey, "sync", "disabled", ""},
    {kOnNonfiniteKey, "skip", "skip_step", ""},
    {kOnNonfiniteKey, "raise", "fail", ""},
    {kOnNonfiniteKey, "error", "fail", ""},
};

// Whether the list "a, b (c), d" has `word`.
bool ListsWord(std::string_view words, std::string_view word) {
  for (size_t at = words.find(word); at != words.npos; at = words.find(word, at + 1)) {
    const std::string_view rest = words.substr(at + word.size());
    const bool begins = at == 0 || words[at - 1] == ' ' || words[at - 1] == '(';
    if (begins && (rest.empty() || rest[0] == ',' || rest[0] == ' ' || rest[0] == ')')) return true;
  }
  return false;
}

}  // namespace

std::span<const ForeignWord> ForeignWords() { return kForeignWords; }

std::string ForeignWordText(std::string_view key, std::string_view word, std::string_view words) {
  std::string known(word);
  for (char& c : known)
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto row = std::ranges::find_if(kForeignWords, [&](const ForeignWord& each) {
    return each.word == known && (each.key.empty() || each.key == key) &&
           (each.here.empty() || ListsWord(words, each.here));
  });
  if (row == std::end(kForeignWords)) return "";
  if (row->here.empty()) return fmt::format("; {}", row->note);
  const std::string note = row->note.empty() ? "" : fmt::format(": {}", row->note);
  return fmt::format("; it is called {} here{}", row->here, note);
}

}  // namespace troupe
