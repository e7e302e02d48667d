#include "worker/executor/block_norms.h"

#include <charconv>
#include <cmath>

#include "worker/executor/host_values.h"
#include "worker/executor/step_result.h"

namespace troupe {
namespace {

StatusOr<double> SumOfSquares(const model::Program& program, kernels::ValueMemory& values,
                              model::ValueId id) {
  const model::Value& value = program.value(id);
  if (value.dtype != model::DType::kFloat32) {
    return Internal("{} is {}, not f32", value.name, model::Name(value.dtype));
  }
  TROUPE_ASSIGN_OR_RETURN(const HostView view, HostView::Of(program, values, id));
  double sum = 0;
  for (const double number : view.As<float>()) sum += number * number;
  return sum;
}

}  // namespace

int BlockOf(std::string_view name, int blocks) {
  constexpr std::string_view kBlock = "block";
  if (name.starts_with("embedding")) return 0;
  int index = 0;
  if (name.starts_with(kBlock)) {
    const char* const begin = name.data() + kBlock.size();
    const auto parsed = std::from_chars(begin, name.data() + name.size(), index);
    if (parsed.ec == std::errc() && index >= 0 && index < blocks) return 1 + index;
  }
  return 1 + blocks;
}

std::string BlockName(int index, std::string_view letters) {
  if (index == 0) return "embedding";
  const auto block = static_cast<size_t>(index - 1);
  if (block >= letters.size()) return "head";
  return fmt::format("block{} ({})", block, letters[block]);
}

StatusOr<std::vector<v1::BlockNorm>> MeasureBlockNorms(const model::Program& program,
                                                       kernels::ValueMemory& values,
                                                       std::string_view letters, double weight,
                                                       Communicator* all) {
  const int blocks = static_cast<int>(letters.size());
  const size_t entries = letters.size() + 2;
  std::vector<double> sums(2 * entries, 0.0);  // gradients first, then parameters
  for (const model::ParameterEntry& entry : program.parameters) {
    if (!entry.counted_in_norm) continue;
    const auto block = static_cast<size_t>(BlockOf(program.value(entry.value).name, blocks));
    TROUPE_ASSIGN_OR_RETURN(const double gradient,
                            SumOfSquares(program, values, entry.reduced_gradient));
    TROUPE_ASSIGN_OR_RETURN(const double parameter, SumOfSquares(program, values, entry.value));
    sums[block] += gradient;
    sums[entries + block] += parameter;
  }
  if (all != nullptr) {
    TROUPE_RETURN_IF_ERROR(
        all->AllReduce(sums.data(), sums.size(), SumFloat64(), Purpose::kControl));
  }
  std::vector<v1::BlockNorm> norms(entries);
  for (size_t i = 0; i < entries; ++i) {
    norms[i].set_block(BlockName(static_cast<int>(i), letters));
    norms[i].set_gradient(MeanGradientNorm(sums[i], weight));
    norms[i].set_parameter(std::sqrt(sums[entries + i]));
  }
  return norms;
}

}  // namespace troupe
