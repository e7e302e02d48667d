#include "worker/rank/rank_environment.h"

#include <algorithm>
#include <map>

#include "base/status.h"

namespace troupe {
namespace {

constexpr std::string_view kPrefixes[] = {"TROUPE_KERNEL_LEVEL=", "TROUPE_FAILPOINTS=", "OMP_", "GOMP_",
                                          "KMP_", "DNNL_", "ONEDNN_", "UCX_", "MALLOC_", "CUDNN_"};

bool IsProduct(model::OpKind kind) {
  using model::OpKind;
  return kind == OpKind::kMatmul || kind == OpKind::kMatmulGradInput ||
         kind == OpKind::kMatmulGradWeight || kind == OpKind::kGroupedMatmul ||
         kind == OpKind::kGroupedMatmulGradInput || kind == OpKind::kGroupedMatmulGradWeight;
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

std::string ProductPrecision(const model::Program& program) {
  int bfloat16 = 0;
  int float32 = 0;
  int packed = 0;
  for (const auto& chunk : program.ops) {
    for (const std::vector<model::Op>& piece : chunk) {
      for (const model::Op& op : piece) {
        const auto* collective = std::get_if<model::CollectiveAttributes>(&op.attributes);
        packed += collective != nullptr && collective->wire == model::DType::kBFloat16;
        if (!IsProduct(op.kind)) continue;
        ++(program.value(op.inputs[0]).dtype == model::DType::kBFloat16 ? bfloat16 : float32);
      }
    }
  }
  std::string text = bfloat16 == 0  ? "float32"
                     : float32 == 0 ? "bfloat16 products, float32 sums"
                                    : fmt::format("bfloat16 products, float32 sums ({} of {} "
                                                  "products; the others float32)",
                                                  bfloat16, bfloat16 + float32);
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
  environment->set_executed_precision(ProductPrecision(program));
  for (std::string& flag : ComputeFlags(process_environment)) {
    environment->add_flags(std::move(flag));
  }
  for (v1::OperationCount& count : CountFallbacks(fallbacks)) {
    *environment->add_fallbacks() = std::move(count);
  }
}

}  // namespace troupe
