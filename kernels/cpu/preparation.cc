#include "kernels/cpu/preparation.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"
#include "kernels/backend/op_arguments.h"
#include "kernels/backend/op_sequence.h"
#include "kernels/cpu/experts/grouped_matmul.h"
#include "kernels/cpu/gather_scatter.h"
#include "kernels/cpu/quantize.h"

namespace troupe::kernels::cpu {
namespace {

using model::Op;
using model::OpKind;
using model::ValueId;

// Below these sizes, synchronising threads costs more than it saves.
constexpr int64_t kSmallElements = 4096;
constexpr int64_t kSmallMatmul = 1 << 19;  // multiply-adds

}  // namespace

Status Preparation::Measure() {
  Status status = OkStatus();
  ForEachOp(program_, [&](const Op& op) {
    if (!status.ok()) return;
    status = MeasureOp(op);
    if (!status.ok()) status = Annotate(status, OperationName(program_, op));
  });
  TROUPE_RETURN_IF_ERROR(status);
  // The plan's scratch size comes from the device profile; the need of this version of oneDNN takes
  // precedence if it is larger.
  const int64_t scratch = std::max(plan_.scratch_bytes, rope_tables_.bytes() + working_bytes_);
  TROUPE_ASSIGN_OR_RETURN(Arena arena, Arena::Map(layout_.bytes() + scratch));
  arena_.emplace(std::move(arena));
  rope_tables_.Fill(
      {reinterpret_cast<std::byte*>(tables()), static_cast<size_t>(rope_tables_.bytes())});
  return OkStatus();
}

Status Preparation::MeasureOp(const Op& op) {
  int64_t bytes = AttentionBytes(op);
  switch (op.kind) {
    case OpKind::kMatmul:
    case OpKind::kMatmulGradInput:
    case OpKind::kMatmulGradWeight: {
      TROUPE_RETURN_IF_ERROR(MeasureMatmul(op, OfBFloat16(MatmulShapeOf(program_, op))));
      if (!model::IsFloat8(program_.value(op.inputs[0]).dtype)) break;
      const std::string line = OperationName(program_, op) + ": " + kFloat8Fallback;
      // Lists each operation once: I and W contain the operations of B.
      if (std::ranges::find(fallbacks_, line) == fallbacks_.end()) fallbacks_.push_back(line);
      bytes = WidenedBytes(op.inputs[0]) + WidenedBytes(op.inputs[1]) +
              matmuls_.at(OfBFloat16(MatmulShapeOf(program_, op)))->scratch_bytes();
      break;
    }
    case OpKind::kQuantize:
      bytes = QuantizeScratchBytes(
          OpArguments(program_, op, [](ValueId) { return nullptr; }).Quantize(), threads_);
      break;
    case OpKind::kGroupedMatmul:
    case OpKind::kGroupedMatmulGradInput:
    case OpKind::kGroupedMatmulGradWeight:
      if (program_.value(op.inputs[0]).dtype != model::DType::kBFloat16) break;
      for (const int64_t rows : kRowTiles) {
        TROUPE_RETURN_IF_ERROR(MeasureMatmul(op, TileOf(op, rows)));
      }
      break;
    case OpKind::kRmsNormGrad:
      bytes = threads_ * Extent(op.inputs[1], 1) * static_cast<int64_t>(sizeof(float));
      break;
    case OpKind::kReduceScatter:
    case OpKind::kScatterRouted:
      if (KeepsInput(op)) bytes = program_.value(op.inputs[0]).bytes();
      break;
    case OpKind::kExchangeHeads:
      bytes = 2 * static_cast<int64_t>(ExchangeOf(op).bytes());
      break;
    case OpKind::kRelayout:
      bytes = 2 * program_.value(op.inputs[0]).bytes();
      break;
    case OpKind::kSumOfSquares:
      bytes = threads_ * static_cast<int64_t>(sizeof(double));
      break;
    default:
      break;
  }
  working_bytes_ = std::max(working_bytes_, bytes);
  return OkStatus();
}

int64_t Preparation::AttentionBytes(const Op& op) const {
  const model::AttentionAttributes* const attention = model::FindAttention(op.attributes);
  if (attention == nullptr) return 0;
  const bool is_part = std::holds_alternative<model::PartAttributes>(op.attributes);
  const int ranks = is_part ? program_.mesh.degrees[model::Axis::kContext] : 1;
  return threads_ *
         kernels_.attention_scratch_bytes(
             {attention->tokens / ranks, attention->head_dim,
              program_.value(op.inputs[0]).dtype == model::DType::kBFloat16,
              op.kind == OpKind::kAttentionGrad || op.kind == OpKind::kAttentionPartGrad});
}

MatmulShape Preparation::TileOf(const Op& op, int64_t rows) const {
  const bool bfloat16 = program_.value(op.inputs[0]).dtype == model::DType::kBFloat16;
  const int64_t a = Extent(op.inputs[0], 1), other = Extent(op.outputs[0], 1);
  if (op.kind == OpKind::kGroupedMatmul) return {MatmulKind::kForward, bfloat16, rows, a, other};
  const MatmulKind kind = op.kind == OpKind::kGroupedMatmulGradInput ? MatmulKind::kInputGradient
                                                                     : MatmulKind::kWeightGradient;
  return {kind, bfloat16, rows, other, a};
}

Status Preparation::MeasureMatmul(const Op& op, const MatmulShape& shape) {
  std::unique_ptr<Matmul>& matmul = matmuls_[shape];
  if (matmul == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(matmul, PrepareMatmul(shape, level_, ThreadsFor(shape)));
  }
  const std::string implementation = matmul->implementation();
  if (implementation.find("ref") != std::string::npos) {
    fallbacks_.push_back(OperationName(program_, op) + ": " + implementation);
  }
  working_bytes_ = std::max(working_bytes_, matmul->scratch_bytes());
  return OkStatus();
}

char* Preparation::Address(ValueId value, int buffer) const {
  return arena_->base() + layout_.OffsetOf(value, buffer);
}

int64_t Preparation::WidenedBytes(ValueId value) const {
  return RoundUp(program_.value(value).elements() * SizeOf(model::DType::kBFloat16), 4096);
}

int Preparation::ThreadsFor(int64_t elements) const {
  return elements < kSmallElements ? 1 : threads_;
}

int Preparation::ThreadsFor(const Op& op) const {
  return ThreadsFor(
      std::max(program_.value(op.inputs[0]).elements(), program_.value(op.outputs[0]).elements()));
}

int Preparation::ThreadsFor(const MatmulShape& shape) const {
  return shape.rows * shape.k * shape.n < kSmallMatmul ? 1 : threads_;
}

StatusOr<Instructions> Preparation::Make(const std::vector<Op>& ops, int buffer) {
  Instructions instructions;
  instructions.reserve(ops.size());
  for (const Op& op : ops) {
    StatusOr<std::unique_ptr<Instruction>> instruction = MakeOne(op, buffer);
    if (!instruction.ok()) return Annotate(instruction.status(), OperationName(program_, op));
    (*instruction)->name = OperationName(program_, op);
    (*instruction)->gradient_in_forward = op.gradient_in_forward;
    (*instruction)->last_microbatch = op.last_microbatch;
    instructions.push_back(std::move(*instruction));
  }
  return instructions;
}

}  // namespace troupe::kernels::cpu
