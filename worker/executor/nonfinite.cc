#include "worker/executor/nonfinite.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "kernels/backend/op_sequence.h"
#include "kernels/numerics/float8.h"
#include "worker/executor/block_norms.h"
#include "worker/executor/host_values.h"

namespace troupe {
namespace {

// Bytes of a text that is sent to the other ranks, including its terminating zero.
constexpr size_t kTextBytes = 200;
using Text = std::array<char, kTextBytes>;
struct Finding {
  Text tensor{};
  Text operation{};
};

Text Shortened(const std::string& from) {
  Text text{};
  std::memcpy(text.data(), from.data(), std::min(from.size(), text.size() - 1));
  return text;
}

bool IsFinite(uint16_t bfloat16) { return (bfloat16 & 0x7F80) != 0x7F80; }

template <typename Number>
int64_t FirstOf(std::span<const Number> numbers) {
  const auto found = std::ranges::find_if(numbers, [](Number number) {
    if constexpr (std::is_same_v<Number, uint16_t>) {
      return !IsFinite(number);
    } else {
      return !std::isfinite(number);
    }
  });
  return found == numbers.end() ? -1 : found - numbers.begin();
}

// The Hugging Face tensor that contains `element` of the entry's value.
std::string PartOf(const model::Program& program, const model::ParameterEntry& entry,
                   int64_t element) {
  const model::Value& value = program.value(entry.value);
  const int64_t row = element / std::max<int64_t>(1, value.row_elements());
  for (const model::ParameterPart& part : entry.parts) {
    const int64_t rows = part.local_shape.empty() ? 1 : part.local_shape[0];
    if (row >= part.row_begin && row < part.row_begin + rows) return part.name;
  }
  return value.name;
}

// The first parameter whose value of this kind is not finite, "WHAT NAME (BLOCK)"; empty: none.
// Searches from the head backwards: a gradient that is not finite makes those of all earlier layers
// so.
StatusOr<std::string> FindInParameters(const model::Program& program, kernels::ValueMemory& values,
                                       std::string_view letters, const char* what,
                                       model::ValueId model::ParameterEntry::*of_entry) {
  for (auto at = program.parameters.rbegin(); at != program.parameters.rend(); ++at) {
    const model::ParameterEntry& entry = *at;
    if (entry.*of_entry == model::kNoValue) continue;  // a frozen parameter has no gradient
    TROUPE_ASSIGN_OR_RETURN(const int64_t element,
                            FirstNonfinite(program, values, entry.*of_entry, 0));
    if (element < 0) continue;
    const int block = BlockOf(program.value(entry.value).name, static_cast<int>(letters.size()));
    return fmt::format("{} {} ({})", what, PartOf(program, entry, element),
                       BlockName(block, letters));
  }
  return std::string();
}

bool CameFromOthers(const model::Op& op) { return model::FindCollective(op.attributes) != nullptr; }

}  // namespace

StatusOr<int64_t> FirstNonfinite(const model::Program& program, kernels::ValueMemory& values,
                                 model::ValueId id, int buffer) {
  const model::DType dtype = program.value(id).dtype;
  if (dtype == model::DType::kInt32) return -1;
  TROUPE_ASSIGN_OR_RETURN(const HostView view, HostView::Of(program, values, id, buffer));
  switch (dtype) {
    case model::DType::kFloat32:
      return FirstOf(view.As<float>());
    case model::DType::kBFloat16:
      return FirstOf(view.As<uint16_t>());
    case model::DType::kFloat64:
      return FirstOf(view.As<double>());
    case model::DType::kInt32:
      break;
    case model::DType::kFloat8E4M3:
    case model::DType::kFloat8E5M2: {
      const auto format = dtype == model::DType::kFloat8E4M3 ? kernels::Float8Format::kE4M3
                                                             : kernels::Float8Format::kE5M2;
      const std::span<const uint8_t> codes = view.As<uint8_t>();
      const auto found = std::ranges::find_if(
          codes, [&](uint8_t code) { return !std::isfinite(kernels::FromFloat8(format, code)); });
      return found == codes.end() ? -1 : found - codes.begin();
    }
  }
  return -1;
}

StatusOr<std::string> NonfiniteWeightOrLoss(const model::Program& program,
                                            kernels::ValueMemory& values,
                                            std::string_view letters) {
  TROUPE_ASSIGN_OR_RETURN(
      std::string weight,
      FindInParameters(program, values, letters, "the weight", &model::ParameterEntry::value));
  if (!weight.empty() || program.loss_totals == model::kNoValue) return weight;
  TROUPE_ASSIGN_OR_RETURN(const int64_t lane,
                          FirstNonfinite(program, values, program.loss_totals, 0));
  return std::string(lane >= 0 ? "the loss" : "");
}

StatusOr<std::string> NonfiniteTensor(const model::Program& program, kernels::ValueMemory& values,
                                      std::string_view letters) {
  TROUPE_ASSIGN_OR_RETURN(std::string found, NonfiniteWeightOrLoss(program, values, letters));
  if (!found.empty()) return found;
  return FindInParameters(program, values, letters, "gradient of",
                          &model::ParameterEntry::reduced_gradient);
}

bool NonfiniteOrigin::IsNonfinite(model::ValueId value, int buffer) {
  const StatusOr<int64_t> first = FirstNonfinite(program_, values_, value, buffer);
  if (!first.ok()) looking_ = false;
  return first.ok() && *first >= 0;
}

void NonfiniteOrigin::Ran(const model::Op& op, const char*, int buffer) {
  // A bad number that came from another rank is detected in the operation that reads it.
  if (!looking_ || CameFromOthers(op)) return;
  const bool is_bad = std::any_of(op.outputs.begin(), op.outputs.end(), [&](model::ValueId output) {
    return IsNonfinite(output, buffer);
  });
  if (!is_bad) return;
  // All later bad numbers on this rank may be consequences of this one.
  looking_ = false;
  const auto root = [&](model::ValueId id) {
    int64_t offset = 0;
    return kernels::RootOf(program_, id, &offset);
  };
  for (const model::ValueId input : op.inputs) {
    // An input that the operation overwrites in place cannot be checked any more: it holds the
    // output.
    const bool in_place =
        std::any_of(op.outputs.begin(), op.outputs.end(),
                    [&](model::ValueId output) { return root(output) == root(input); });
    if (!in_place && IsNonfinite(input, buffer)) return;
  }
  operation_ = kernels::OperationName(program_, op);
}

StatusOr<std::string> DescribeNonfinite(const NonfiniteFinding& own, int culprit,
                                        Communicator* all) {
  const Finding mine{Shortened(own.tensor), Shortened(own.operation)};
  std::vector<Finding> found(all == nullptr ? 1 : static_cast<size_t>(all->size()));
  if (all == nullptr) {
    found[0] = mine;
  } else {
    TROUPE_RETURN_IF_ERROR(all->AllGather(&mine, found.data(), sizeof(mine), Purpose::kControl));
  }
  const auto first = [&](auto text_of) {
    return static_cast<size_t>(
        std::find_if(found.begin(), found.end(),
                     [&](const Finding& one) { return text_of(one)[0] != '\0'; }) -
        found.begin());
  };
  const size_t origin = first([](const Finding& one) { return one.operation.data(); });
  size_t teller = origin;
  if (teller == found.size() || found[teller].tensor[0] == '\0') {
    teller = culprit >= 0 && static_cast<size_t>(culprit) < found.size() &&
                     found[static_cast<size_t>(culprit)].tensor[0] != '\0'
                 ? static_cast<size_t>(culprit)
                 : first([](const Finding& one) { return one.tensor.data(); });
  }
  std::string text;
  if (teller < found.size()) {
    text = fmt::format("rank {}: {} is not finite", teller, found[teller].tensor.data());
  }
  if (origin < found.size()) {
    text += fmt::format("{}the first value that is not finite is an output of {} on rank {}",
                        text.empty() ? "" : "; ", found[origin].operation.data(), origin);
  }
  return text;
}

}  // namespace troupe
