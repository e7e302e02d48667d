#include "kernels/backend/rope_tables.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include "base/check.h"
#include "kernels/backend/arena_layout.h"
#include "kernels/backend/op_sequence.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/numerics/rope_frequencies.h"

namespace troupe::kernels {
namespace {

using model::Op;
using model::OpKind;

bool SameRotation(const model::RopeAttributes& a, const model::RopeAttributes& b) {
  return a.head_dim == b.head_dim && a.theta == b.theta && a.scaling.factor == b.scaling.factor &&
         a.scaling.low_freq_factor == b.scaling.low_freq_factor &&
         a.scaling.high_freq_factor == b.scaling.high_freq_factor && a.buffer == b.buffer &&
         a.scaling.original_max_position_embeddings == b.scaling.original_max_position_embeddings;
}

float InBuffer(float x, model::DType buffer) {
  return buffer == model::DType::kBFloat16 ? ToFloat(ToBFloat16(x)) : x;
}

// Number of tokens of the longest sample of any attention. Without attention, positions are less
// than the number of rotated rows.
int64_t LongestSample(const model::Program& program) {
  int64_t of_attention = 0, of_rows = 0;
  ForEachOp(program, [&](const Op& op) {
    if (const auto* const attention = model::FindAttention(op.attributes)) {
      of_attention = std::max(of_attention, attention->tokens);
    } else if (op.kind == OpKind::kRope) {
      of_rows = std::max(of_rows, program.value(op.inputs[0]).dims[0].local);
    }
  });
  return of_attention > 0 ? of_attention : of_rows;
}

}  // namespace

RopeTables::RopeTables(const model::Program& program) : rows_(LongestSample(program)) {
  ForEachOp(program, [this](const Op& op) {
    if (op.kind == OpKind::kRope) Add(std::get<model::RopeAttributes>(op.attributes));
  });
}

void RopeTables::Add(const model::RopeAttributes& attributes) {
  if (Find(attributes) != nullptr) return;
  tables_.push_back({attributes, bytes_});
  bytes_ += RoundUp(rows_ * attributes.head_dim * 4 + attributes.head_dim * 4, 64);
}

const RopeTables::Table* RopeTables::Find(const model::RopeAttributes& attributes) const {
  const auto found = std::ranges::find_if(
      tables_, [&](const Table& table) { return SameRotation(table.attributes, attributes); });
  return found == tables_.end() ? nullptr : &*found;
}

void RopeTables::Fill(std::span<std::byte> memory) const {
  for (const Table& table : tables_) {
    const int64_t half = table.attributes.head_dim / 2;
    auto* row = reinterpret_cast<float*>(memory.data() + table.offset);
    auto* const frequencies = reinterpret_cast<double*>(row + rows_ * table.attributes.head_dim);
    for (int64_t i = 0; i < half; ++i) frequencies[i] = RopeFrequency(table.attributes, i);
    for (int64_t position = 0; position < rows_; ++position, row += 2 * half) {
      for (int64_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(position) * frequencies[i];
        row[i] = InBuffer(static_cast<float>(std::cos(angle)), table.attributes.buffer);
        row[half + i] = InBuffer(static_cast<float>(std::sin(angle)), table.attributes.buffer);
      }
    }
  }
}

void RopeTables::Place(const model::RopeAttributes& attributes, const char* base,
                       RopeArgs* args) const {
  const Table* const table = Find(attributes);
  TROUPE_CHECK(table != nullptr, "the program has no tables for this RoPE operation");
  args->table = reinterpret_cast<const float*>(base + table->offset);
  args->frequencies =
      reinterpret_cast<const double*>(base + table->offset + rows_ * attributes.head_dim * 4);
  args->table_rows = rows_;
}

}  // namespace troupe::kernels
