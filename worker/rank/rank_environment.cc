#include "worker/rank/rank_environment.h"

#include <algorithm>
#include <map>

#include "base/status.h"
#include "kernels/backend/op_sequence.h"

namespace troupe {
namespace {

constexpr std::string_view kPrefixes[] = {"TROUPE_KERNEL_LEVEL=",
                                          "TROUPE_FAILPOINTS=",
                                          "OMP_",
                                          "GOMP_",
                                          "KMP_",
                                          "DNNL_",
                                          "ONEDNN_",
                                          "UCX_",
                                          "MALLOC_",
                                          "CUDNN_",
                                          "NCCL_",
                                          "XLA_FLAGS=",
                                          "LIBTPU_INIT_ARGS="};

const char* FormatName(model::DType dtype) {
  return dtype == model::DType::kFloat8E4M3 ? "e4m3" : "e5m2";
}

// The scaling recipe of float8 operands; none if the program has none.
model::Float8Recipe RecipeOf(const model::Program& program) {
  model::Float8Recipe recipe = model::Float8Recipe::kNone;
  kernels::ForEachOp(program, [&](const model::Op& op) {
    if (!kernels::IsMatmul(op.kind) || !model::IsFloat8(program.value(op.inputs[0]).dtype)) return;
    recipe = !program.amax_histories.empty()                ? model::Float8Recipe::kDelayed
             : program.value(op.inputs[2]).dims.size() == 1 ? model::Float8Recipe::kCurrent
                                                            : model::Float8Recipe::kBlockwise;
  });
  return recipe;
}

// Whether some collective sends gradients as bfloat16.
bool PacksGradients(const model::Program& program) {
  bool packs = false;
  kernels::ForEachOp(program,
                     [&](const model::Op& op) { packs |= WireOf(op) == model::DType::kBFloat16; });
  return packs;
}

const char* PlainName(model::DType dtype) {
  switch (dtype) {
    case model::DType::kFloat64:
      return "float64";
    case model::DType::kBFloat16:
      return "bfloat16";
    default:
      return "float32";
  }
}

// Describes the matmuls with float8 operands: "float8 matmuls of linear layers, delayed scaling,
// float32 accumulators (8 matmul e4m3 x e4m3, …; 24 of them multiplied as bfloat16)".
std::string Float8Text(model::Float8Recipe recipe,
                       const std::vector<kernels::ExecutedMatmul>& matmuls) {
  std::string text = fmt::format(
      "float8 matmuls of linear layers, {} scaling, float32 accumulators (", Name(recipe));
  std::string_view separator;
  std::map<std::string, int64_t> other;  // by the type in which they were multiplied
  for (const kernels::ExecutedMatmul& matmul : matmuls) {
    if (!model::IsFloat8(matmul.a)) continue;
    text += fmt::format("{}{} {} {} x {}", separator, matmul.count, model::Name(matmul.kind),
                        FormatName(matmul.a), FormatName(matmul.b));
    separator = ", ";
    if (!model::IsFloat8(matmul.used_a)) other[PlainName(matmul.used_a)] += matmul.count;
  }
  for (const auto& [type, count] : other)
    text += fmt::format("; {} of them multiplied as {}", count, type);
  return text + ")";
}

// Describes the other matmuls: the type of all, or the count of each type, and how many are
// multiplied in a type other than their own. Empty if there are none.
std::string PlainText(const std::vector<kernels::ExecutedMatmul>& matmuls) {
  std::map<model::DType, int64_t> counts;
  int64_t all = 0, widened = 0;
  for (const kernels::ExecutedMatmul& matmul : matmuls) {
    if (model::IsFloat8(matmul.a)) continue;
    counts[matmul.used_a] += matmul.count;
    all += matmul.count;
    if (matmul.a == model::DType::kBFloat16 && matmul.used_a == model::DType::kFloat32) {
      widened += matmul.count;
    }
  }
  const int64_t bfloat16 = counts[model::DType::kBFloat16];
  if (all == 0) return "";
  if (counts[model::DType::kFloat64] > 0) return "float64";
  if (bfloat16 == 0) return "float32";
  if (bfloat16 == all) return "bfloat16 matmuls, float32 accumulators";
  const std::string how =
      widened > 0 ? fmt::format("; {} of bfloat16 multiplied as float32", widened) : "";
  return fmt::format(
      "bfloat16 matmuls, float32 accumulators ({} of {} matmuls; the others float32{})", bfloat16,
      all, how);
}

}  // namespace

std::vector<std::string> ComputeFlags(const char* const* environment) {
  std::vector<std::string> flags;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view setting = *environment;
    if (std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                    [&](std::string_view prefix) { return setting.starts_with(prefix); })) {
      flags.emplace_back(setting);
    }
  }
  std::sort(flags.begin(), flags.end());
  return flags;
}

std::string MatmulPrecision(const model::Program& program,
                            const std::vector<kernels::ExecutedMatmul>& matmuls) {
  std::string text = PlainText(matmuls);
  const model::Float8Recipe recipe = RecipeOf(program);
  if (recipe != model::Float8Recipe::kNone) {
    text = Float8Text(recipe, matmuls) + (text.empty() ? "" : "; else " + text);
  }
  if (PacksGradients(program)) text += ", gradients sent as bfloat16";
  return text;
}

std::string CoreFallback(const std::string& fault) {
  return "cores of this host: not divided with its other daemons: " + fault;
}

std::vector<v1::OperationCount> CountFallbacks(const std::vector<std::string>& lines) {
  std::map<std::string, int64_t> counts;
  for (const std::string& line : lines) ++counts[line.substr(0, line.find(' '))];
  std::vector<v1::OperationCount> counted;
  for (const auto& [operation, count] : counts) {
    counted.emplace_back();
    counted.back().set_operation(operation);
    counted.back().set_count(count);
  }
  return counted;
}

v1::Compilation CompilationToProto(const kernels::Compilation& compilation) {
  v1::Compilation proto;
  proto.set_plugin(compilation.plugin);
  proto.mutable_options()->Assign(compilation.options.begin(), compilation.options.end());
  proto.set_compiled(compilation.compiled);
  proto.set_cache_hits(compilation.cache_hits);
  proto.set_seconds(compilation.seconds);
  for (const auto& [reason, count] : compilation.cache_faults) {
    v1::OperationCount* const fault = proto.add_cache_faults();
    fault->set_operation(reason);
    fault->set_count(count);
  }
  return proto;
}

void DescribeProgram(const model::Program& program,
                     const std::vector<kernels::ExecutedMatmul>& matmuls,
                     const std::vector<std::string>& fallbacks,
                     const char* const* process_environment, v1::RankEnvironment* environment) {
  environment->set_programs(1);
  environment->set_executed_precision(MatmulPrecision(program, matmuls));
  for (std::string& flag : ComputeFlags(process_environment)) {
    environment->add_flags(std::move(flag));
  }
  for (v1::OperationCount& count : CountFallbacks(fallbacks)) {
    *environment->add_fallbacks() = std::move(count);
  }
}

}  // namespace troupe
