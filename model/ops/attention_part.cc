// kAttentionPart, kAttentionPartGrad: ring attention. Queries stay; keys and values travel round
// the context axis. Each part attends to the keys of one rank and merges its softmax with that of
// the previous parts: with lse the logarithm of a query's sum of exponentials,
//   lse = log(exp(lse') + exp(lse_part)), o = exp(lse' - lse)·o' + exp(lse_part - lse)·o_part
// (Liu, Zaharia, Abbeel 2023; head and tail chunks: Brandon et al. 2023). No query of the head
// chunk sees the keys of a later rank, and no query sees an earlier rank's tail chunk, so all parts
// cost the same.
//
// All parts form one softmax, so the gradient of each part depends only on o and lse of the last
// part. The derivative passes the gradient of o on unchanged. It sends keys and values round the
// ring again, in the reverse direction, instead of saving them.
#include <algorithm>

#include "model/ops/kinds.h"
#include "model/ops/placement_rule.h"
#include "model/program/derivative.h"

namespace troupe::model {
namespace {

// The type of keys and values of part `shift` on the rank that they come from.
StatusOr<Value> Unshifted(const PartAttributes& part, const Value& kv) {
  Value home = kv;
  AxisPlacement& placement = home.placement[Axis::kContext];
  if (placement.kind != PlacementKind::kShard || placement.how != ShardHow::kHeadTail ||
      placement.shift != part.shift) {
    return InvalidArgument("input {} is {} on axis context, must be S(0,head_tail) of shift {}",
                           kv.name, ToText(placement), part.shift);
  }
  placement.shift = 0;
  return home;
}

Status CheckExtents(const AttentionAttributes& a, const MeshView& mesh, const Value& q,
                    const Value& kv) {
  if (a.key_value_heads <= 0 || a.query_heads % a.key_value_heads != 0) {
    return InvalidArgument("{} query heads are not a multiple of {} key-value heads", a.query_heads,
                           a.key_value_heads);
  }
  const int64_t rows = a.tokens / mesh.degrees[Axis::kContext];
  if (q.dims[1].local != a.query_heads * a.head_dim ||
      kv.dims[1].local != 2 * a.key_value_heads * a.head_dim || q.dims[0].local % rows != 0) {
    return InvalidArgument(
        "inputs {} and {} are [{}, {}] and [{}, {}], must have samples of {} rows, {}·{} and "
        "2·{}·{} columns",
        q.name, kv.name, q.dims[0].local, q.dims[1].local, kv.dims[0].local, kv.dims[1].local, rows,
        a.query_heads, a.head_dim, a.key_value_heads, a.head_dim);
  }
  return ExpectSameExtent(q, 0, kv, 0);
}

// Checks that the documents cover whole samples.
Status CheckDocuments(const PartAttributes& part, const MeshView& mesh, const Value& q,
                      const Value& documents) {
  TROUPE_RETURN_IF_ERROR(ExpectType(documents, DType::kInt32, 1));
  const int64_t rows = q.dims[0].local * mesh.degrees[Axis::kContext];
  if (documents.dims[0].local == rows) return OkStatus();
  return InvalidArgument("input {} has {} rows, must have {} of whole samples", documents.name,
                         documents.dims[0].local, rows);
}

bool HasDocuments(const PartAttributes& part) {
  return part.attention.mask.kind == Mask::Kind::kDocument;
}

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  const auto& part = std::get<PartAttributes>(attributes);
  const AttentionAttributes& a = part.attention;
  const size_t due = 2 + (HasDocuments(part) ? 1 : 0) + (part.shift > 0 ? 2 : 0);
  if (in.size() != due) return InvalidArgument("there are {} inputs, must be {}", in.size(), due);
  const Value& q = *in[0];
  TROUPE_ASSIGN_OR_RETURN(const Value kv, Unshifted(part, *in[1]));
  TROUPE_RETURN_IF_ERROR(ExpectType(kv, q.dtype, 2));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&q, "rn", true, ShardHow::kContiguous},
                                              {&kv, "rn", true, ShardHow::kSegments}}));
  TROUPE_RETURN_IF_ERROR(CheckExtents(a, mesh, q, kv));
  if (HasDocuments(part)) TROUPE_RETURN_IF_ERROR(CheckDocuments(part, mesh, q, *in[2]));
  const Dim heads = {"heads", q.dims[1].global / a.head_dim, a.query_heads};
  const Placement placement = letters.Output("rn", ShardHow::kContiguous);
  std::vector<ValueType> types = {{part.last ? q.dtype : DType::kFloat32, q.dims, placement, {}},
                                  {DType::kFloat32, {q.dims[0], heads}, placement, {}}};
  if (part.shift > 0) {
    for (int i = 0; i < 2; ++i) {
      const Value& before = *in[due - 2 + i];
      TROUPE_RETURN_IF_ERROR(ExpectType(before, DType::kFloat32, 2));
      if (before.placement != placement || before.dims != types[i].dims) {
        return InvalidArgument("input {} is {}, but this part's output is {}", before.name,
                               ToText(before.placement), ToText(placement));
      }
    }
  }
  return types;
}

StatusOr<std::vector<ValueType>> InferGrad(const MeshView& mesh, const Attributes& attributes,
                                           Inputs in) {
  const auto& part = std::get<PartAttributes>(attributes);
  const size_t due = HasDocuments(part) ? 6 : 5;
  if (in.size() != due) return InvalidArgument("there are {} inputs, must be {}", in.size(), due);
  const Value &d_output = *in[0], &q = *in[1], &output = *in[3], &lse = *in[4];
  TROUPE_ASSIGN_OR_RETURN(const Value kv, Unshifted(part, *in[2]));
  TROUPE_RETURN_IF_ERROR(ExpectType(d_output, q.dtype, 2));
  TROUPE_RETURN_IF_ERROR(ExpectType(output, q.dtype, 2));
  TROUPE_RETURN_IF_ERROR(ExpectType(lse, DType::kFloat32, 2));
  TROUPE_ASSIGN_OR_RETURN(const ShardedLetters letters,
                          ShardedLetters::Of({{&d_output, "rn", true, ShardHow::kContiguous},
                                              {&q, "rn", true, ShardHow::kContiguous},
                                              {&kv, "rn", true, ShardHow::kSegments},
                                              {&output, "rn", true, ShardHow::kContiguous},
                                              {&lse, "rn", true, ShardHow::kContiguous}}));
  TROUPE_RETURN_IF_ERROR(CheckExtents(part.attention, mesh, q, kv));
  if (HasDocuments(part)) TROUPE_RETURN_IF_ERROR(CheckDocuments(part, mesh, q, *in[5]));
  Placement shifted = letters.Output("rn", ShardHow::kSegments);
  shifted[Axis::kContext].shift = static_cast<int16_t>(part.shift);
  return std::vector<ValueType>{{q.dtype, q.dims, letters.Output("rn", ShardHow::kContiguous), {}},
                                {kv.dtype, kv.dims, shifted, kv.segments}};
}

Status Differentiate(const Op& op, GradientContext& context) {
  const auto& part = std::get<PartAttributes>(op.attributes);
  const ValueId q = op.inputs[0], kv = op.inputs[1];
  const Op* last = &op;
  while (!std::get<PartAttributes>(last->attributes).last) {
    last = context.ReaderOf(last->outputs[0], OpKind::kAttentionPart);
    if (last == nullptr) return Internal("part {} of an attention has no next part", part.shift);
  }
  const ValueId d_output = context.GradientOf(op.outputs[0]);
  ValueId keys_values = kv;
  if (part.shift > 0) {
    // Shifting this rank's own keys and values one step in the reverse direction gives those of the
    // last part.
    ValueId from = kv;
    if (part.last) {
      for (int s = part.shift; s > 0; --s) from = context.MakerOf(from)->inputs[0];
    } else {
      from = context.AgainOf(context.ReaderOf(op.outputs[0], OpKind::kAttentionPart)->inputs[1]);
    }
    const ShiftAttributes back = {{GroupOf(Axis::kContext), CollectivePurpose::kContext}, -1};
    TROUPE_ASSIGN_OR_RETURN(keys_values, context.EmitAgain(OpKind::kShift, back, {from}, kv));
    const ValueId before = op.inputs[op.inputs.size() - 2];
    TROUPE_RETURN_IF_ERROR(context.Contribute(before, d_output));
  }
  std::vector<ValueId> inputs = {d_output, q, keys_values, last->outputs[0], last->outputs[1]};
  if (HasDocuments(part)) inputs.push_back(op.inputs[2]);
  return context.Emit(OpKind::kAttentionPartGrad, op.attributes, inputs, {q, kv});
}

// By the convention of model FLOPs a sample has T²/2 query-key pairs; with n ranks, each of a
// rank's n parts has 1/n² of them.
double ForwardFlops(const Op& op, const Program& program) {
  const auto& a = std::get<PartAttributes>(op.attributes).attention;
  const Value& q = program.value(op.inputs[op.kind == OpKind::kAttentionPart ? 0 : 1]);
  const double ranks = program.mesh.degrees[Axis::kContext];
  const double tokens = static_cast<double>(a.tokens);
  const double samples = static_cast<double>(q.dims[0].local) * ranks / tokens;
  const double pairs = tokens * tokens / 2 / (ranks * ranks);
  return 4.0 * samples * pairs * static_cast<double>(a.query_heads * a.head_dim);
}

double BackwardFlops(const Op& op, const Program& program) { return 2 * ForwardFlops(op, program); }

// Like attention's scratch, for the rows of one rank.
int64_t Scratch(const Op& op, const Program& program, int threads) {
  const auto& a = std::get<PartAttributes>(op.attributes).attention;
  constexpr int64_t kTile = 64;
  const int64_t rows = std::max<int64_t>(kTile, a.tokens / program.mesh.degrees[Axis::kContext]);
  return threads * int64_t{sizeof(float)} * (2 * kTile * rows + 6 * rows * a.head_dim);
}

}  // namespace

OpRules AttentionPartRules() {
  return {.infer = Infer,
          .differentiate = Differentiate,
          .model_flops = ForwardFlops,
          .scratch_bytes = Scratch};
}
OpRules AttentionPartGradRules() {
  return {.infer = InferGrad, .model_flops = BackwardFlops, .scratch_bytes = Scratch};
}

}  // namespace troupe::model
