#include "kernels/backend/program_part.h"

#include <cstring>
#include <set>
#include <span>
#include <vector>

#include "base/random.h"
#include "kernels/numerics/bfloat16.h"
#include "model/cost.h"

namespace troupe::kernels {
namespace {

constexpr size_t kNoise = 1 << 16;

// Fills all elements of `value` from `noise`, in its dtype.
std::vector<std::byte> Contents(const model::Value& value, const std::vector<float>& noise) {
  std::vector<std::byte> bytes(static_cast<size_t>(value.bytes()));
  for (size_t i = 0; i < static_cast<size_t>(value.elements()); ++i) {
    const float number = noise[i % kNoise];
    switch (value.dtype) {
      case model::DType::kFloat32:
        std::memcpy(&bytes[4 * i], &number, 4);
        break;
      case model::DType::kBFloat16: {
        const BFloat16 rounded = ToBFloat16(number);
        std::memcpy(&bytes[2 * i], &rounded, 2);
        break;
      }
      case model::DType::kInt32: {
        const auto integer = static_cast<int32_t>(i & 127);
        std::memcpy(&bytes[4 * i], &integer, 4);
        break;
      }
      default:
        break;  // other dtypes stay zero
    }
  }
  return bytes;
}

}  // namespace

model::Program OnlyOps(const model::Program& program, const KeepOp& keep) {
  model::Program reduced = program;
  const auto drop = [&](const model::Op& op) { return !keep(op); };
  for (auto& chunk : reduced.ops) {
    for (auto& piece : chunk) std::erase_if(piece, drop);
  }
  std::erase_if(reduced.update, drop);
  reduced.initialize.clear();
  return reduced;
}

Status FillRandomly(ValueMemory& values, const model::Program& program) {
  std::vector<float> noise(kNoise);
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<float>(0.02 * Normal(1, i));
  std::set<model::ValueId> used;
  const auto use = [&](const std::vector<model::Op>& ops) {
    for (const model::Op& op : ops) {
      used.insert(op.inputs.begin(), op.inputs.end());
      used.insert(op.outputs.begin(), op.outputs.end());
    }
  };
  for (const auto& chunk : program.ops) {
    for (const auto& piece : chunk) use(piece);
  }
  use(program.update);
  for (const model::ValueId id : used) {
    TROUPE_RETURN_IF_ERROR(values.Write(id, 0, Contents(program.value(id), noise)));
  }
  // Optimizers run a first step: a mean of squares is not negative, and steps are counted from 1.
  for (const model::State& state : program.states) {
    const bool counts = state.kind == model::StateKind::kAppliedSteps;
    if (!counts && state.kind != model::StateKind::kOptimizer) continue;
    const auto elements = static_cast<size_t>(program.value(state.value).elements());
    const std::vector<float> numbers(elements, counts ? 1.0f : 0.0f);
    TROUPE_RETURN_IF_ERROR(values.Write(state.value, 0, std::as_bytes(std::span(numbers))));
  }
  return OkStatus();
}

std::string ShapesOf(const model::Op& op, const model::Program& program) {
  std::string text;
  for (size_t i = 0; i < op.inputs.size() && i < 3; ++i) {
    text += text.empty() ? "[" : " [";
    const auto& dims = program.value(op.inputs[i]).dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      text += (d > 0 ? "," : "") + std::to_string(dims[d].local);
    }
    text += "]";
  }
  return text;
}

int64_t BytesTouched(const model::Op& op, const model::Program& program) {
  if (op.kind == model::OpKind::kEmbedding) return 2 * program.value(op.outputs[0]).bytes();
  if (op.kind == model::OpKind::kEmbeddingGrad) {
    const model::Value& dy = program.value(op.inputs[1]);
    return dy.bytes() + 2 * dy.elements() * static_cast<int64_t>(sizeof(float));
  }
  return model::BytesMoved(program, {op});
}

bool IsOfOneRank(model::OpKind kind) {
  return !model::IsCollective(kind) && kind != model::OpKind::kWait &&
         kind != model::OpKind::kControlTotals && kind != model::OpKind::kControlRouted &&
         kind != model::OpKind::kControlHalt && kind != model::OpKind::kCountStep;
}

}  // namespace troupe::kernels
