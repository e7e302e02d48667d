#include "kernels/cpu/preparation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "kernels/cpu/gather_scatter.h"
#include "kernels/cpu/grouped_matmul.h"
#include "kernels/op_sequence.h"
#include "kernels/rope_frequencies.h"

namespace troupe::kernels::cpu {
namespace {

using model::Op;
using model::OpKind;
using model::ValueId;

constexpr int64_t kPage = 4096;
// Below these the hand-over between threads costs more than it saves.
constexpr int64_t kSmallElements = 4096;
constexpr int64_t kSmallProduct = 1 << 19;  // multiply-adds

bool SameRotation(const model::RopeAttributes& a, const model::RopeAttributes& b) {
  return a.head_dim == b.head_dim && a.theta == b.theta && a.scaling.factor == b.scaling.factor &&
         a.scaling.low_freq_factor == b.scaling.low_freq_factor &&
         a.scaling.high_freq_factor == b.scaling.high_freq_factor &&
         a.scaling.original_max_position_embeddings == b.scaling.original_max_position_embeddings;
}

// Of attention and of its parts.
const model::AttentionAttributes& AttentionOf(const Op& op) {
  const auto* part = std::get_if<model::PartAttributes>(&op.attributes);
  return part != nullptr ? part->attention : std::get<model::AttentionAttributes>(op.attributes);
}

}  // namespace

Status Preparation::Measure() {
  const auto each = [this](auto&& body) -> Status {
    for (const auto& chunk : program_.ops) {
      for (const auto& piece : chunk) {
        for (const Op& op : piece) TROUPE_RETURN_IF_ERROR(body(op));
      }
    }
    for (const Op& op : program_.update) TROUPE_RETURN_IF_ERROR(body(op));
    for (const Op& op : program_.initialize) TROUPE_RETURN_IF_ERROR(body(op));
    return OkStatus();
  };
  TROUPE_RETURN_IF_ERROR(each([this](const Op& op) {
    if (op.kind == OpKind::kAttention || op.kind == OpKind::kAttentionPart) {
      longest_sample_ = std::max(longest_sample_, AttentionOf(op).tokens);
    }
    return OkStatus();
  }));
  TROUPE_RETURN_IF_ERROR(each([this](const Op& op) {
    if (Status status = MeasureOp(op); !status.ok()) {
      return Annotate(status, OperationName(program_, op));
    }
    return OkStatus();
  }));

  int64_t offset = RoundUp(plan_.persistent_bytes, kPage);
  for (size_t chunk = 0; chunk < plan_.saved_bytes.size(); ++chunk) {
    saved_offsets_.push_back(offset);
    offset += RoundUp(plan_.saved_bytes[chunk], kPage) * plan_.buffers[chunk];
  }
  temporary_offset_ = offset;
  offset += RoundUp(plan_.temporary_bytes, kPage);
  scratch_offset_ = offset;
  // The plan's figure is the device profile's; what this library version needs decides.
  offset += std::max(plan_.scratch_bytes, tables_bytes_ + working_bytes_);
  TROUPE_ASSIGN_OR_RETURN(Arena arena, Arena::Map(offset));
  arena_.emplace(std::move(arena));
  for (const RopeTable& table : tables_) FillTable(table);
  return OkStatus();
}

Status Preparation::MeasureOp(const Op& op) {
  int64_t bytes = 0;
  switch (op.kind) {
    case OpKind::kMatmul:
    case OpKind::kMatmulGradInput:
    case OpKind::kMatmulGradWeight:
      return MeasureProduct(op, ShapeOf(op));
    case OpKind::kGroupedMatmul:
    case OpKind::kGroupedMatmulGradInput:
    case OpKind::kGroupedMatmulGradWeight:
      if (program_.value(op.inputs[0]).dtype != model::DType::kBFloat16) break;
      for (const int64_t rows : kRowTiles) {
        TROUPE_RETURN_IF_ERROR(MeasureProduct(op, TileOf(op, rows)));
      }
      break;
    case OpKind::kAttention:
    case OpKind::kAttentionGrad:
    case OpKind::kAttentionPart:
    case OpKind::kAttentionPartGrad: {
      const bool part = op.kind == OpKind::kAttentionPart || op.kind == OpKind::kAttentionPartGrad;
      const model::AttentionAttributes& attributes = AttentionOf(op);
      const int ranks = part ? program_.mesh.degrees[model::Axis::kContext] : 1;
      bytes = threads_ *
              kernels_.attention_scratch_bytes(
                  {attributes.tokens / ranks, attributes.head_dim,
                   program_.value(op.inputs[0]).dtype == model::DType::kBFloat16,
                   op.kind == OpKind::kAttentionGrad || op.kind == OpKind::kAttentionPartGrad});
      break;
    }
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
    case OpKind::kRope:
      // A program without attention: positions are at most its rows'.
      if (longest_sample_ == 0) longest_sample_ = Extent(op.inputs[0], 0);
      TableOf(std::get<model::RopeAttributes>(op.attributes));
      break;
    default:
      break;
  }
  working_bytes_ = std::max(working_bytes_, bytes);
  return OkStatus();
}

ProductShape Preparation::ShapeOf(const Op& op) const {
  const bool bfloat16 = program_.value(op.inputs[0]).dtype == model::DType::kBFloat16;
  const int64_t rows = Extent(op.inputs[0], 0);
  if (op.kind == OpKind::kMatmulGradWeight) {
    return {ProductKind::kWeightGradient, bfloat16, rows, Extent(op.inputs[1], 1),
            Extent(op.inputs[0], 1)};
  }
  const ProductKind kind =
      op.kind == OpKind::kMatmul ? ProductKind::kForward : ProductKind::kInputGradient;
  return {kind, bfloat16, rows, Extent(op.inputs[1], 1), Extent(op.inputs[1], 0)};
}

ProductShape Preparation::TileOf(const Op& op, int64_t rows) const {
  const bool bfloat16 = program_.value(op.inputs[0]).dtype == model::DType::kBFloat16;
  const int64_t a = Extent(op.inputs[0], 1), other = Extent(op.outputs[0], 1);
  if (op.kind == OpKind::kGroupedMatmul) return {ProductKind::kForward, bfloat16, rows, a, other};
  const ProductKind kind = op.kind == OpKind::kGroupedMatmulGradInput
                               ? ProductKind::kInputGradient
                               : ProductKind::kWeightGradient;
  return {kind, bfloat16, rows, other, a};
}

Status Preparation::MeasureProduct(const Op& op, const ProductShape& shape) {
  std::unique_ptr<Product>& product = products_[shape];
  if (product == nullptr) {
    TROUPE_ASSIGN_OR_RETURN(product, PrepareProduct(shape, level_, ThreadsFor(shape)));
  }
  const std::string implementation = product->implementation();
  if (implementation.find("ref") != std::string::npos) {
    fallbacks_.push_back(OperationName(program_, op) + ": " + implementation);
  }
  working_bytes_ = std::max(working_bytes_, product->scratch_bytes());
  return OkStatus();
}

Preparation::RopeTable& Preparation::TableOf(const model::RopeAttributes& attributes) {
  for (RopeTable& table : tables_) {
    if (SameRotation(table.attributes, attributes)) return table;
  }
  tables_.push_back({attributes, longest_sample_, tables_bytes_});
  tables_bytes_ += RoundUp(longest_sample_ * attributes.head_dim * 4 + attributes.head_dim * 4, 64);
  return tables_.back();
}

void Preparation::FillTable(const RopeTable& table) {
  const int64_t half = table.attributes.head_dim / 2;
  float* row = reinterpret_cast<float*>(arena_->base() + scratch_offset_ + table.offset);
  auto* frequencies = reinterpret_cast<double*>(row + table.rows * table.attributes.head_dim);
  for (int64_t i = 0; i < half; ++i) frequencies[i] = RopeFrequency(table.attributes, i);
  for (int64_t position = 0; position < table.rows; ++position, row += 2 * half) {
    for (int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) * frequencies[i];
      row[i] = static_cast<float>(std::cos(angle));
      row[half + i] = static_cast<float>(std::sin(angle));
    }
  }
}

char* Preparation::Address(ValueId value, int buffer) const {
  const model::Location& location = plan_.locations[value];
  char* base = arena_->base() + location.offset;
  switch (location.region) {
    case model::Region::kPersistent:
      return base;
    case model::Region::kSaved:
      return base + saved_offsets_[location.chunk_index] +
             RoundUp(plan_.saved_bytes[location.chunk_index], kPage) * buffer;
    case model::Region::kTemporary:
      return base + temporary_offset_;
  }
  return base;
}

int Preparation::ThreadsFor(int64_t elements) const {
  return elements < kSmallElements ? 1 : threads_;
}

int Preparation::ThreadsFor(const ProductShape& shape) const {
  return shape.rows * shape.k * shape.n < kSmallProduct ? 1 : threads_;
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
