#include "model/cost.h"

#include <algorithm>

#include "model/program/op_rules.h"

namespace troupe::model {
namespace {

// The bytes that a collective reduces, scatters or gathers. Several inputs form one range of memory
// with 64-byte-aligned members.
int64_t PayloadBytes(const Op& op, const Program& program) {
  if (op.kind == OpKind::kAllGather) return program.value(op.outputs[0]).bytes();
  int64_t bytes = 0;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    bytes = (bytes + 63) / 64 * 64 + program.value(op.inputs[i]).bytes();
  }
  if (WireOf(op) == DType::kBFloat16) {
    bytes = bytes / SizeOf(DType::kFloat32) * SizeOf(DType::kBFloat16);
  }
  return bytes;
}

// Whether run-time counts determine the number of rows.
bool IsRouted(const Op& op) {
  return op.kind == OpKind::kGatherRouted || op.kind == OpKind::kScatterRouted;
}

// Whether the operation sends half as many bytes as an all-reduce.
bool HalvesTraffic(const Op& op) {
  return op.kind == OpKind::kReduceScatter || op.kind == OpKind::kAllGather ||
         op.kind == OpKind::kExchangeHeads || IsRouted(op);
}

bool Communicates(const Op& op) {
  return op.kind == OpKind::kAllReduce || op.kind == OpKind::kControlReduce ||
         op.kind == OpKind::kAllToAll || op.kind == OpKind::kShift ||
         op.kind == OpKind::kRelayout || HalvesTraffic(op);
}

// The share of this rank's two chunks of each sample that is sent to other ranks.
double MovedShare(const RelayoutAttributes& relayout, const MeshView& mesh) {
  const int ranks = mesh.degrees[Axis::kContext], rank = mesh.coordinates[Axis::kContext];
  double moved = 0;
  for (const int place : {0, 1}) {
    const int chunk = ChunkAt(relayout.from(), ranks, rank, place);
    if (RankOfChunk(relayout.to(), ranks, chunk) != rank) moved += 0.5;
  }
  return moved;
}

}  // namespace

double ModelFlops(const Op& op, const Program& program) {
  const auto flops = RulesOf(op.kind).model_flops;
  return flops == nullptr ? 0 : flops(op, program);
}

bool IsAttention(OpKind kind) {
  return kind == OpKind::kAttention || kind == OpKind::kAttentionGrad ||
         kind == OpKind::kAttentionPart || kind == OpKind::kAttentionPartGrad;
}

PartFlops ModelFlops(const Program& program, int chunk_index) {
  PartFlops sum;
  for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
    for (const Op& op : program.Ops(chunk_index, piece)) {
      double& part = op.recomputes()                   ? sum.recomputed
                     : op.part == Part::kForward       ? sum.forward
                     : op.part == Part::kInputGradient ? sum.input_gradient
                                                       : sum.weight_gradient;
      part += ModelFlops(op, program);
    }
  }
  return sum;
}

double ModelFlops(const Program& program, int chunk_index, Piece piece) {
  double sum = 0;
  for (const Op& op : program.Ops(chunk_index, piece)) sum += ModelFlops(op, program);
  return sum;
}

std::optional<CollectiveCost> CollectiveCostOf(const Program& program, const Op& op) {
  if (!Communicates(op)) return std::nullopt;
  const CollectiveAttributes& attributes = CollectiveOf(op);
  const int ranks = GroupSize(program.mesh, attributes.group);
  if (ranks == 1) return std::nullopt;
  // The traffic that routing is expected to cause: the smaller of the two buffers can hold all of
  // it.
  const bool exchange = op.kind == OpKind::kAllToAll;
  const int64_t bytes =
      exchange ? std::min(program.value(op.inputs[0]).bytes(), program.value(op.outputs[0]).bytes())
      : IsRouted(op) ? std::get<RoutedRowsAttributes>(op.attributes).expected_rows *
                           program.value(op.inputs[0]).row_elements() *
                           SizeOf(program.value(op.inputs[0]).dtype)
                     : PayloadBytes(op, program);
  // The fraction sent: all of it to a neighbour; the chunks that move; all but the own part; or
  // twice the latter.
  const double times = op.kind == OpKind::kShift ? 1.0
                       : op.kind == OpKind::kRelayout
                           ? MovedShare(std::get<RelayoutAttributes>(op.attributes), program.mesh)
                       : HalvesTraffic(op) || exchange ? (ranks - 1.0) / ranks
                                                       : 2.0 * (ranks - 1.0) / ranks;
  return CollectiveCost{op.kind, attributes.group, attributes.purpose, bytes,
                        times * static_cast<double>(bytes)};
}

std::vector<CollectiveCost> Collectives(const Program& program, const std::vector<Op>& ops) {
  std::vector<CollectiveCost> costs;
  for (const Op& op : ops) {
    if (const auto cost = CollectiveCostOf(program, op)) costs.push_back(*cost);
  }
  return costs;
}

int64_t BytesMoved(const Program& program, const std::vector<Op>& ops) {
  int64_t bytes = 0;
  for (const Op& op : ops) bytes += BytesMoved(op, program);
  return bytes;
}

}  // namespace troupe::model
