#include "worker/rank/rank_environment.h"

#include <algorithm>
#include <map>

#include "base/status.h"
#include "kernels/op_sequence.h"

namespace troupe {
namespace {

constexpr std::string_view kPrefixes[] = {"TROUPE_KERNEL_LEVEL=", "TROUPE_FAILPOINTS=", "OMP_", "GOMP_",
                                          "KMP_", "DNNL_", "ONEDNN_", "UCX_", "MALLOC_", "CUDNN_", "NCCL_"};

bool IsProduct(model::OpKind kind) {
  using model::OpKind;
  return kind == OpKind::kMatmul || kind == OpKind::kMatmulGradInput ||
         kind == OpKind::kMatmulGradWeight || kind == OpKind::kGroupedMatmul ||
         kind == OpKind::kGroupedMatmulGradInput || kind == OpKind::kGroupedMatmulGradWeight;
}

const char* FormatName(model::DType dtype) { return dtype == model::DType::kFloat8E4M3 ? "e4m3" : "e5m2"; }

// Products of one kind with factors in 8 bits.
struct Float8Count {
  int products = 0;
  std::string formats;
};

// How factors are scaled.
model::Float8Recipe RecipeOf(const model::Program& program, const model::Op& product) {
  if (!program.amax_histories.empty()) return model::Float8Recipe::kDelayed;
  return program.value(product.inputs[2]).dims.size() == 1 ? model::Float8Recipe::kCurrent
                                                           : model::Float8Recipe::kBlockwise;
}

// "float8 products of linear layers, delayed scaling, float32 sums (8 matmul e4m3 x e4m3, …; 24 of them multiplied as bfloat16)".
std::string Float8Text(model::Float8Recipe recipe, const std::map<model::OpKind, Float8Count>& counts,
                       const std::vector<std::string>& fallbacks) {
  std::string text = fmt::format("float8 products of linear layers, {} scaling, float32 sums (", Name(recipe));
  std::string_view separator;
  for (const auto& [kind, count] : counts) {
    text += fmt::format("{}{} {} {}", separator, count.products, model::Name(kind), count.formats);
    separator = ", ";
  }
  const auto as_bfloat16 = std::ranges::count_if(fallbacks, [](std::string_view line) {
    return line.ends_with(kernels::kFloat8Fallback);
  });
  if (as_bfloat16 > 0) text += fmt::format("; {} of them multiplied as bfloat16", as_bfloat16);
  return text + ")";
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

std::string ProductPrecision(const model::Program& program, const std::vector<std::string>& fallbacks) {
  std::map<model::OpKind, Float8Count> float8;
  model::Float8Recipe recipe = model::Float8Recipe::kNone;
  int bfloat16 = 0;
  int float32 = 0;
  int packed = 0;
  for (const auto& chunk : program.ops) {
    for (size_t piece = 0; piece < chunk.size(); ++piece) {
      // What they hold B has too.
      if (piece == static_cast<size_t>(model::Piece::kInputGradient) ||
          piece == static_cast<size_t>(model::Piece::kWeightGradient)) {
        continue;
      }
      for (const model::Op& op : chunk[piece]) {
        const auto* collective = std::get_if<model::CollectiveAttributes>(&op.attributes);
        packed += collective != nullptr && collective->wire == model::DType::kBFloat16;
        if (!IsProduct(op.kind)) continue;
        if (model::IsFloat8(program.value(op.inputs[0]).dtype)) {
          Float8Count& count = float8[op.kind];
          ++count.products;
          recipe = RecipeOf(program, op);
          count.formats = fmt::format("{} x {}", FormatName(program.value(op.inputs[0]).dtype),
                                      FormatName(program.value(op.inputs[1]).dtype));
          continue;
        }
        ++(program.value(op.inputs[0]).dtype == model::DType::kBFloat16 ? bfloat16 : float32);
      }
    }
  }
  std::string text = bfloat16 == 0  ? "float32"
                     : float32 == 0 ? "bfloat16 products, float32 sums"
                                    : fmt::format("bfloat16 products, float32 sums ({} of {} "
                                                  "products; the others float32)",
                                                  bfloat16, bfloat16 + float32);
  if (!float8.empty()) text = Float8Text(recipe, float8, fallbacks) + "; else " + text;
  if (packed > 0) text += ", gradients sent as bfloat16";
  return text;
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

void DescribeProgram(const model::Program& program, const std::vector<std::string>& fallbacks,
                     const char* const* process_environment, v1::RankEnvironment* environment) {
  environment->set_programs(1);
  environment->set_executed_precision(ProductPrecision(program, fallbacks));
  for (std::string& flag : ComputeFlags(process_environment)) {
    environment->add_flags(std::move(flag));
  }
  for (v1::OperationCount& count : CountFallbacks(fallbacks)) {
    *environment->add_fallbacks() = std::move(count);
  }
}

}  // namespace troupe
