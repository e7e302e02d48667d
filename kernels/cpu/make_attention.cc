// The instructions of attention and its parts.
#include <memory>

#include "kernels/cpu/preparation.h"

namespace troupe::kernels::cpu {
namespace {

using model::Axis;
using model::ContextRows;
using model::Op;
using model::OpKind;

// Rows of a whole attention, without documents.
AttentionRows RowsOf(const model::AttentionAttributes& a, int64_t samples) {
  const ContextRows whole = ContextRows::Of(a.tokens, 1, 0);
  return {samples, a.tokens, a.query_heads, a.key_value_heads, a.head_dim, whole, whole, nullptr};
}

AttentionRows RowsOf(const model::PartAttributes& part, const model::MeshView& mesh, int64_t rows) {
  const int ranks = mesh.degrees[Axis::kContext], rank = mesh.coordinates[Axis::kContext];
  AttentionRows of = RowsOf(part.attention, rows * ranks / part.attention.tokens);
  of.queries = ContextRows::Of(part.attention.tokens, ranks, rank);
  of.keys =
      ContextRows::Of(part.attention.tokens, ranks, ((rank - part.shift) % ranks + ranks) % ranks);
  return of;
}

}  // namespace

std::unique_ptr<Instruction> Preparation::MakeAttention(const Op& op, int buffer) {
  const auto in = [&](size_t i) { return Address(op.inputs[i], buffer); };
  const auto out = [&](size_t i) { return Address(op.outputs[i], buffer); };
  const auto floats = [](char* address) { return reinterpret_cast<float*>(address); };
  const auto ints = [](const char* address) { return reinterpret_cast<const int32_t*>(address); };
  const auto width = [&](model::ValueId id) { return Extent(id, 1); };
  const bool bfloat16 = program_.value(op.inputs[0]).dtype == model::DType::kBFloat16;
  const int64_t bytes = model::SizeOf(program_.value(op.inputs[0]).dtype);
  const int threads = ThreadsFor(program_.value(op.outputs[0]).elements());
  switch (op.kind) {
    case OpKind::kSplitHeads:
    case OpKind::kJoinHeads: {
      const bool join = op.kind == OpKind::kJoinHeads;
      const model::ValueId q = join ? op.inputs[0] : op.outputs[0];
      const model::ValueId kv = join ? op.inputs[1] : op.outputs[1];
      const SplitHeadsArgs args = {join ? out(0) : in(0), Address(q, buffer), Address(kv, buffer),
                                   Extent(q, 0),          width(q) * bytes,   width(kv) * bytes,
                                   join};
      return std::make_unique<KernelInstruction<SplitHeadsArgs>>(
          args, kernels_.split_heads, threads);
    }
    case OpKind::kAttention: {
      const auto& a = std::get<model::AttentionAttributes>(op.attributes);
      const int64_t k_at = a.query_heads * a.head_dim * bytes;
      const int64_t v_at = k_at + a.key_value_heads * a.head_dim * bytes;
      const int64_t stride = width(op.inputs[0]);
      AttentionRows rows = RowsOf(a, Extent(op.inputs[0], 0) / a.tokens);
      if (op.inputs.size() > 1) rows.documents = ints(in(1));
      const AttentionArgs args = {in(0),  in(0) + k_at, in(0) + v_at, out(0),    floats(out(1)),
                                  nullptr, nullptr,     scratch(),    stride, stride,
                                  false,  rows};
      return std::make_unique<KernelInstruction<AttentionArgs>>(args, kernels_.attention[bfloat16],
                                                                threads);
    }
    case OpKind::kAttentionGrad: {
      const auto& a = std::get<model::AttentionAttributes>(op.attributes);
      const int64_t k_at = a.query_heads * a.head_dim * bytes;
      const int64_t v_at = k_at + a.key_value_heads * a.head_dim * bytes;
      const int64_t stride = width(op.inputs[1]);
      AttentionRows rows = RowsOf(a, Extent(op.inputs[1], 0) / a.tokens);
      if (op.inputs.size() > 4) rows.documents = ints(in(4));
      const AttentionGradArgs args = {in(0),         in(1),  in(1) + k_at,  in(1) + v_at,
                                      in(2),         floats(in(3)), out(0), out(0) + k_at,
                                      out(0) + v_at, scratch(), stride, stride, rows};
      return std::make_unique<KernelInstruction<AttentionGradArgs>>(
          args, kernels_.attention_grad[bfloat16], threads);
    }
    case OpKind::kAttentionPart: {
      const auto& part = std::get<model::PartAttributes>(op.attributes);
      const int64_t v_at = part.attention.key_value_heads * part.attention.head_dim * bytes;
      AttentionRows rows = RowsOf(part, program_.mesh, Extent(op.inputs[0], 0));
      const size_t count = op.inputs.size();
      const bool merges = part.shift > 0;
      if (count > (merges ? 4u : 2u)) rows.documents = ints(in(2));
      const AttentionArgs args = {in(0),
                                  in(1),
                                  in(1) + v_at,
                                  out(0),
                                  floats(out(1)),
                                  merges ? floats(in(count - 2)) : nullptr,
                                  merges ? floats(in(count - 1)) : nullptr,
                                  scratch(),
                                  width(op.inputs[0]),
                                  width(op.inputs[1]),
                                  !part.last,
                                  rows};
      return std::make_unique<KernelInstruction<AttentionArgs>>(args, kernels_.attention[bfloat16],
                                                                threads);
    }
    default: {
      const auto& part = std::get<model::PartAttributes>(op.attributes);
      const int64_t v_at = part.attention.key_value_heads * part.attention.head_dim * bytes;
      AttentionRows rows = RowsOf(part, program_.mesh, Extent(op.inputs[1], 0));
      if (op.inputs.size() > 5) rows.documents = ints(in(5));
      const AttentionGradArgs args = {in(0),  in(1),         in(2),     in(2) + v_at,
                                      in(3),  floats(in(4)), out(0),    out(1),
                                      out(1) + v_at,         scratch(), width(op.inputs[1]),
                                      width(op.inputs[2]),   rows};
      return std::make_unique<KernelInstruction<AttentionGradArgs>>(
          args, kernels_.attention_grad[bfloat16], threads);
    }
  }
}

}  // namespace troupe::kernels::cpu
