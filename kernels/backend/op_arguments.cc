#include "kernels/backend/op_arguments.h"

#include <algorithm>
#include <variant>

#include "kernels/backend/matmul_shape.h"
#include "kernels/numerics/dropout_draw.h"

namespace troupe::kernels {
namespace {

using model::Axis;
using model::ContextRows;
using model::OpKind;
using model::ValueId;

// The rows of attention over whole samples, without documents.
AttentionRows RowsOf(const model::AttentionAttributes& a, int64_t samples) {
  const ContextRows whole = ContextRows::Of(a.tokens, 1, 0);
  return {samples, a.tokens, a.query_heads, a.key_value_heads, a.head_dim, whole, whole, nullptr};
}

}  // namespace

bool OpArguments::bfloat16() const {
  const auto is_bfloat16 = [this](ValueId value) {
    return program_.value(value).dtype == model::DType::kBFloat16;
  };
  return std::ranges::any_of(op_.inputs, is_bfloat16) ||
         std::ranges::any_of(op_.outputs, is_bfloat16);
}

int64_t OpArguments::elements() const {
  return op_.outputs.empty() ? 0 : program_.value(op_.outputs[0]).elements();
}

EmbeddingArgs OpArguments::Embedding() const {
  return {in_ints(0),      in(1),           out(0),        in_extent(0, 0),
          in_extent(1, 0), in_extent(1, 1), vocab_offset()};
}

EmbeddingGradArgs OpArguments::EmbeddingGrad() const {
  return {in_ints(0),       in(1),          out_floats(0), in_extent(0, 0), out_extent(0, 0),
          out_extent(0, 1), vocab_offset(), false};
}

RmsNormArgs OpArguments::RmsNorm() const {
  const float eps = static_cast<float>(std::get<model::NormAttributes>(op_.attributes).eps);
  const int64_t rows = in_extent(0, 0), hidden = in_extent(0, 1);
  if (op_.kind == OpKind::kRmsNorm) {
    return {in(0), nullptr, in_floats(1), nullptr, out(0), out_floats(1), rows, hidden, eps};
  }
  return {in(0), in(1), in_floats(2), out(0), out(1), out_floats(2), rows, hidden, eps};
}

RmsNormGradArgs OpArguments::RmsNormGrad() const {
  return {
      in(0),  in(1),         in_floats(2), in_floats(3),    op_.inputs.size() > 4 ? in(4) : nullptr,
      out(0), out_floats(1), nullptr,      in_extent(1, 0), in_extent(1, 1),
      false};
}

AddArgs OpArguments::Add() const { return {in(0), in(1), out(0), elements()}; }

AccumulateArgs OpArguments::Accumulate() const {
  return {in_floats(0), out_floats(0), elements(), false};
}

CastArgs OpArguments::Cast() const { return {in_floats(0), out(0), elements()}; }

RopeArgs OpArguments::Rope() const {
  const auto& rope = std::get<model::RopeAttributes>(op_.attributes);
  return {.x = in(0),
          .positions = in_ints(1),
          .y = out(0),
          .table = nullptr,
          .frequencies = nullptr,
          .rows = in_extent(0, 0),
          .rotated_heads = rope.query_heads + rope.key_value_heads,
          .copied_heads = rope.key_value_heads,
          .head_dim = rope.head_dim,
          .table_rows = 0,
          .inverse = rope.inverse};
}

DropoutArgs OpArguments::Dropout() const {
  const auto& dropout = std::get<model::DropoutAttributes>(op_.attributes);
  return {in(0),
          in_ints(1),
          out(0),
          in_extent(0, 0),
          in_extent(0, 1),
          dropout.own,
          dropout.held,
          dropout.key,
          DropoutThreshold(dropout.probability),
          static_cast<float>(1 / (1 - dropout.probability))};
}

SplitHeadsArgs OpArguments::SplitHeads() const {
  const bool join = op_.kind == OpKind::kJoinHeads;
  const ValueId q = join ? op_.inputs[0] : op_.outputs[0];
  const ValueId kv = join ? op_.inputs[1] : op_.outputs[1];
  return {join ? out(0) : in(0),
          address_(q),
          address_(kv),
          Extent(q, 0),
          Extent(q, 1) * element_bytes(),
          Extent(kv, 1) * element_bytes(),
          join};
}

AttentionArgs OpArguments::Attention() const {
  const auto& a = std::get<model::AttentionAttributes>(op_.attributes);
  const int64_t k_at = a.query_heads * a.head_dim * element_bytes();
  const int64_t v_at = k_at + a.key_value_heads * a.head_dim * element_bytes();
  const int64_t stride = in_extent(0, 1);
  AttentionRows rows = RowsOf(a, in_extent(0, 0) / a.tokens);
  if (op_.inputs.size() > 1) rows.documents = in_ints(1);
  return {in(0),   in(0) + k_at, in(0) + v_at, out(0), out_floats(1), nullptr,
          nullptr, nullptr,      stride,       stride, false,         rows};
}

AttentionGradArgs OpArguments::AttentionGrad() const {
  const auto& a = std::get<model::AttentionAttributes>(op_.attributes);
  const int64_t k_at = a.query_heads * a.head_dim * element_bytes();
  const int64_t v_at = k_at + a.key_value_heads * a.head_dim * element_bytes();
  const int64_t stride = in_extent(1, 1);
  AttentionRows rows = RowsOf(a, in_extent(1, 0) / a.tokens);
  if (op_.inputs.size() > 4) rows.documents = in_ints(4);
  return {in(0),         in(1),         in(1) + k_at, in(1) + v_at, in(2),  in_floats(3), out(0),
          out(0) + k_at, out(0) + v_at, nullptr,      stride,       stride, rows};
}

AttentionRows OpArguments::RowsOfParts(int64_t rows) const {
  const auto& part = std::get<model::PartAttributes>(op_.attributes);
  const int64_t tokens = part.attention.tokens;
  const int ranks = program_.mesh.degrees[Axis::kContext];
  const int rank = program_.mesh.coordinates[Axis::kContext];
  AttentionRows of = RowsOf(part.attention, rows * ranks / tokens);
  of.queries = ContextRows::Of(tokens, ranks, rank);
  of.keys = ContextRows::Of(tokens, ranks, ((rank - part.shift) % ranks + ranks) % ranks);
  return of;
}

AttentionArgs OpArguments::AttentionPart() const {
  const auto& part = std::get<model::PartAttributes>(op_.attributes);
  const int64_t v_at = part.attention.key_value_heads * part.attention.head_dim * element_bytes();
  AttentionRows rows = RowsOfParts(in_extent(0, 0));
  const size_t count = op_.inputs.size();
  const bool merges = part.shift > 0;
  if (count > (merges ? 4u : 2u)) rows.documents = in_ints(2);
  return {.q = in(0),
          .k = in(1),
          .v = in(1) + v_at,
          .o = out(0),
          .lse = out_floats(1),
          .merged_o = merges ? in_floats(count - 2) : nullptr,
          .merged_lse = merges ? in_floats(count - 1) : nullptr,
          .scratch = nullptr,
          .q_stride = in_extent(0, 1),
          .kv_stride = in_extent(1, 1),
          .wide_output = !part.last,
          .rows = rows};
}

AttentionGradArgs OpArguments::AttentionPartGrad() const {
  const auto& part = std::get<model::PartAttributes>(op_.attributes);
  const int64_t v_at = part.attention.key_value_heads * part.attention.head_dim * element_bytes();
  AttentionRows rows = RowsOfParts(in_extent(1, 0));
  if (op_.inputs.size() > 5) rows.documents = in_ints(5);
  return {in(0),  in(1),         in(2),   in(2) + v_at,    in(3),           in_floats(4), out(0),
          out(1), out(1) + v_at, nullptr, in_extent(1, 1), in_extent(2, 1), rows};
}

SwiGluArgs OpArguments::SwiGlu() const {
  const bool counted = op_.inputs.size() > 1;
  return {in(0),
          out(0),
          in_extent(0, 0),
          in_extent(0, 1) / 2,
          counted ? in_ints(1) : nullptr,
          counted ? in_extent(1, 0) : 0};
}

SwiGluGradArgs OpArguments::SwiGluGrad() const {
  const bool counted = op_.inputs.size() > 2;
  return {in(0),
          in(1),
          out(0),
          in_extent(1, 0),
          in_extent(1, 1) / 2,
          counted ? in_ints(2) : nullptr,
          counted ? in_extent(2, 0) : 0};
}

SoftmaxStatsArgs OpArguments::SoftmaxStats() const {
  return {in(0),           in_ints(1),      out_floats(0), out_floats(1),
          in_extent(0, 0), in_extent(0, 1), vocab_offset()};
}

SoftmaxStatsGradArgs OpArguments::SoftmaxStatsGrad() const {
  return {in(0),  in_ints(1),      in_floats(2),    in_floats(3),
          out(0), in_extent(0, 0), in_extent(0, 1), vocab_offset()};
}

SoftmaxStatsAndGradArgs OpArguments::SoftmaxStatsAndGrad() const {
  return {in(0),
          in_ints(1),
          in_floats(2),
          out(0),
          out_floats(1),
          out_floats(2),
          in_extent(0, 0),
          in_extent(0, 1),
          std::get<model::LossAttributes>(op_.attributes).z_loss_coef};
}

SoftmaxRescaleArgs OpArguments::SoftmaxRescale() const {
  return {in_floats(0), in_floats(1), in_floats(2), out_floats(0), in_extent(1, 0)};
}

CrossEntropyArgs OpArguments::CrossEntropy() const {
  return {in_floats(0), in_floats(1), in_floats(2), out_doubles(0), in_extent(0, 0), false};
}

CrossEntropyGradArgs OpArguments::CrossEntropyGrad() const {
  return {in_floats(0),
          in_floats(1),
          out_floats(0),
          in_extent(1, 0),
          op_.inputs.size() > 2 ? in_floats(2) : nullptr,
          std::get<model::LossAttributes>(op_.attributes).z_loss_coef};
}

QuantizeArgs OpArguments::Quantize() const {
  const auto& a = std::get<model::QuantizeAttributes>(op_.attributes);
  const size_t inputs = model::InputsOf(a.source);
  const bool is_value = a.source == model::QuantizeSource::kValue;
  const bool is_swiglu = a.source == model::QuantizeSource::kSwiGlu;
  QuantizeArgs args = {.source = a.source,
                       .x = is_value ? in(0) : nullptr,
                       .dy = is_value || is_swiglu ? nullptr : in(0),
                       .gu = is_value ? nullptr : in(inputs - 1),
                       .history = op_.inputs.size() > inputs ? in_floats(inputs) : nullptr,
                       .rows = in_extent(0, 0),
                       .columns = in_extent(inputs - 1, 1) / (is_swiglu ? 2 : 1),
                       .block_rows = a.block_rows,
                       .e5m2 = a.format == model::DType::kFloat8E5M2};
  size_t next = 0;
  if (a.rows) args.rows_form = reinterpret_cast<uint8_t*>(out(next++));
  if (a.columns) args.columns_form = reinterpret_cast<uint8_t*>(out(next++));
  if (a.rows) args.rows_scale = out_floats(next++);
  if (a.columns) {
    args.columns_scale = a.rows && a.block_rows == 0 ? args.rows_scale : out_floats(next++);
  }
  if (a.folds) args.amax = out_floats(next);
  return args;
}

std::vector<AmaxHistoryEntry> OpArguments::AmaxHistories() const {
  const size_t count = (op_.inputs.size() - 1) / 2;
  std::vector<AmaxHistoryEntry> entries;
  for (size_t i = 0; i < count; ++i)
    entries.push_back({in_floats(1 + i), in_floats(1 + count + i)});
  return entries;
}

DequantizeArgs OpArguments::Operand(size_t index) const {
  const model::Value& scale = program_.value(op_.inputs[index + 2]);
  const int64_t rows = in_extent(index, 0);
  const bool as_rows =
      op_.kind == OpKind::kMatmul || (op_.kind == OpKind::kMatmulGradInput && index == 0);
  return {.q = reinterpret_cast<const uint8_t*>(in(index)),
          .scale = in_floats(index + 2),
          .y = nullptr,
          .rows = rows,
          .columns = in_extent(index, 1),
          .block_rows = scale.dims.size() == 1        ? 0
                        : scale.dims[0].local == rows ? 1
                                                      : static_cast<int32_t>(model::kFloat8Block),
          .e5m2 = program_.value(op_.inputs[index]).dtype == model::DType::kFloat8E5M2,
          .transpose = !as_rows};
}

MatmulArgs OpArguments::Matmul() const {
  if (model::IsFloat8(program_.value(op_.inputs[0]).dtype)) {
    const MatmulShape shape = MatmulShapeOf(program_, op_);
    return {.kind = shape.kind,
            .a = in(0),
            .b = in(1),
            .c = out(0),
            .rows = shape.rows,
            .k = shape.k,
            .n = shape.n,
            .counts = nullptr,
            .num_counts = 1,
            .experts = 1,
            .accumulate = false};
  }
  const bool forward = op_.kind == OpKind::kMatmul || op_.kind == OpKind::kGroupedMatmul;
  const bool weight =
      op_.kind == OpKind::kMatmulGradWeight || op_.kind == OpKind::kGroupedMatmulGradWeight;
  const bool counted = op_.inputs.size() > 2;
  return {.kind = forward  ? MatmulKind::kForward
                  : weight ? MatmulKind::kWeightGradient
                           : MatmulKind::kInputGradient,
          .a = in(0),
          .b = in(1),
          .c = out(0),
          .rows = in_extent(0, 0),
          .k = in_extent(1, 1),
          .n = forward ? out_extent(0, 1) : in_extent(0, 1),
          .counts = counted ? in_ints(2) : nullptr,
          .num_counts = counted ? in_extent(2, 0) : 1,
          .experts = counted ? std::get<model::GroupedAttributes>(op_.attributes).local_experts : 1,
          .accumulate = false};
}

RouterLogitsArgs OpArguments::RouterLogits() const {
  return {in(0), in_floats(1), out_floats(0), in_extent(0, 0), in_extent(0, 1), in_extent(1, 0)};
}

RouterLogitsGradInputArgs OpArguments::RouterLogitsGradInput() const {
  return {in_floats(0), in_floats(1), out(0), in_extent(0, 0), in_extent(1, 1), in_extent(0, 1)};
}

RouterLogitsGradWeightArgs OpArguments::RouterLogitsGradWeight() const {
  return {in_floats(0),    in(1),           out_floats(0), in_extent(0, 0),
          in_extent(1, 1), in_extent(0, 1), false};
}

RouterTopKArgs OpArguments::RouterTopK() const {
  return {in_floats(0),    op_.inputs.size() > 1 ? in_floats(1) : nullptr,
          out_floats(0),   out_ints(1),
          out_ints(2),     out_ints(3),
          in_extent(0, 0), router()};
}

RouterTopKGradArgs OpArguments::RouterTopKGrad() const {
  return {in_floats(0), in_floats(1), in_ints(2), out_floats(0), in_extent(1, 0), router()};
}

RouterLoadArgs OpArguments::RouterLoad() const {
  return {in_ints(0), in_floats(1), out_floats(0), in_extent(0, 0), out_extent(0, 0), router()};
}

RouterSlotsArgs OpArguments::RouterSlots() const {
  return {in_ints(0), in_ints(1), out_ints(0), out_ints(1), elements(), router()};
}

RouterLossArgs OpArguments::RouterLoss() const {
  return {in_floats(0),    in_floats(1),    in_floats(2), in_ints(3), out_doubles(0),
          in_extent(0, 0), in_extent(1, 0), router(),     false};
}

RouterLossGradArgs OpArguments::RouterLossGrad() const {
  return {in_floats(0), in_floats(1), out_floats(0), in_extent(0, 0), router()};
}

RouterBiasArgs OpArguments::RouterBias() const {
  return {in_doubles(0), in_doubles(1), in_floats(2), in_extent(2, 0),
          std::get<model::RouterBiasAttributes>(op_.attributes).rate};
}

PermuteArgs OpArguments::Permute() const {
  return {in(0), in_ints(1), out(0), in_extent(1, 0), in_extent(1, 1), in_extent(0, 1)};
}

CombineArgs OpArguments::Combine() const {
  return {in(0),          in_ints(1),      op_.inputs.size() > 2 ? in_floats(2) : nullptr,
          out(0),         in_extent(1, 0), in_extent(1, 1),
          in_extent(0, 1)};
}

CombineGradArgs OpArguments::CombineGrad() const {
  return {in(0),         in(1),           in_ints(2),      in_floats(3),   out(0),
          out_floats(1), in_extent(2, 0), in_extent(2, 1), in_extent(0, 1)};
}

CopyRoutedRowsArgs OpArguments::CopyRoutedRows() const {
  return {in(0),           out(0),          in_ints(1),
          in_extent(1, 0), in_extent(0, 0), in_extent(0, 1) * element_bytes()};
}

}  // namespace troupe::kernels
