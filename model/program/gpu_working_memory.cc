#include "model/program/gpu_working_memory.h"

#include <algorithm>

#include "model/program/storage.h"

namespace troupe::model {
namespace {

int64_t RoundUp(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

// The workspace of an attention gradient that cuDNN may compute; our own kernels compute it if a
// single head exceeds the limit.
int64_t AttentionGradWorkspace(const AttentionAttributes& attention, const Value& qkv) {
  if (qkv.dtype != DType::kBFloat16 || attention.mask.kind != Mask::Kind::kCausal) return 0;
  const int64_t of_head = AttentionGradHeadBytes(attention);
  if (kAttentionGradCallBytes + of_head > kAttentionWorkspaceBytesMax) return 0;
  const int64_t heads = qkv.dims[0].local / attention.tokens * attention.key_value_heads;
  return std::min(kAttentionGradCallBytes + heads * of_head, kAttentionWorkspaceBytesMax);
}

// FP8 operands are dequantised to bfloat16 if the device's library does not support them, depending
// on the device and on extents. If it does, it needs only their scales in another order, which take
// less memory.
int64_t WidenedBytes(const Value& a, const Value& b) {
  return IsFloat8(a.dtype) ? (a.elements() + b.elements()) * SizeOf(DType::kBFloat16) : 0;
}

int64_t OnComputeStream(const Op& op, const Program& program) {
  switch (op.kind) {
    case OpKind::kMatmul:
    case OpKind::kMatmulGradInput:
    case OpKind::kMatmulGradWeight:
      return kMatmulWorkspaceBytesMax +
             WidenedBytes(program.value(op.inputs[0]), program.value(op.inputs[1]));
    // In addition to the library's workspace, one float per row and head: lse by heads, or our own
    // kernels' sums of do · o.
    case OpKind::kAttentionGrad:
      return program.value(op.inputs[3]).bytes() +
             AttentionGradWorkspace(std::get<AttentionAttributes>(op.attributes),
                                    program.value(op.inputs[1]));
    case OpKind::kAttentionPartGrad:
      return program.value(op.inputs[4]).bytes();
    default:
      return 0;
  }
}

// Buffers of a sum whose terms are sent as `wire`: the received terms and the terms to send.
int64_t PackedSumBytes(const Op& op, const Program& program) {
  const CollectiveGroup& group = CollectiveOf(op).group;
  const int64_t ranks = GroupSize(program.mesh, group), element = SizeOf(WireOf(op));
  if (const auto* const scatter = std::get_if<ReduceScatterAttributes>(&op.attributes)) {
    const Value& x = program.value(op.inputs[0]);
    const Range rows = scatter->cut.Of(x.dims[0].local, static_cast<int>(ranks),
                                       IndexInGroup(program.mesh, group));
    const int64_t own = rows.size() * x.row_elements();
    return element * (x.elements() - own + (ranks - 1) * own);
  }
  // Contiguous ranges are summed at once: at most all of them. Blocks have up to kUnit elements
  // more than their share. The sums of this rank's block are rounded and sent back to all ranks.
  constexpr int64_t kUnit = 16;
  int64_t elements = 0;
  const int64_t gap = BucketAlignment(program) / SizeOf(DType::kFloat32);
  for (const ValueId input : op.inputs) elements += RoundUp(program.value(input).elements(), gap);
  elements = RoundUp(elements, program.bucket.padding);
  const int64_t block = (elements + ranks - 1) / ranks + kUnit;
  return element * (2 * elements + ranks * block);
}

int64_t OnCommunicationStream(const Op& op, const Program& program) {
  const CollectiveAttributes* const attributes = FindCollective(op.attributes);
  if (attributes == nullptr || GroupSize(program.mesh, attributes->group) == 1) return 0;
  if (op.kind == OpKind::kExchangeHeads || op.kind == OpKind::kRelayout) {
    return program.value(op.inputs[0]).bytes() + program.value(op.outputs[0]).bytes();
  }
  return WireOf(op) != DType::kFloat32 ? PackedSumBytes(op, program) : 0;
}

}  // namespace

int64_t AttentionGradHeadBytes(const AttentionAttributes& attention) {
  const int64_t tokens = attention.tokens;
  // Gradients of scores in bfloat16, do · o, and dk and dv of every query head if heads share keys.
  const bool grouped = attention.query_heads != attention.key_value_heads;
  const int64_t of_query_head = 2 * RoundUp(tokens, 64) * RoundUp(tokens, 128) + 4 * tokens +
                                (grouped ? 4 * tokens * attention.head_dim : 0);
  return attention.query_heads / attention.key_value_heads * of_query_head;
}

int64_t GpuWorkingBytes(const Program& program) {
  int64_t compute = 0, communication = 0;
  const auto add = [&](const std::vector<Op>& ops) {
    for (const Op& op : ops) {
      compute = std::max(compute, OnComputeStream(op, program));
      communication = std::max(communication, OnCommunicationStream(op, program));
    }
  };
  for (const auto& pieces : program.ops) {
    for (const auto& ops : pieces) add(ops);
  }
  add(program.update);
  add(program.initialize);
  return compute + communication;
}

}  // namespace troupe::model
