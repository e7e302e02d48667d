#include "model/cost.h"

#include <algorithm>
#include <variant>

#include "model/program/op_rules.h"

namespace troupe::model {
namespace {

// The bytes that a collective reduces, scatters, gathers or exchanges. Several inputs form one
// range of memory with 64-byte-aligned members. For routed rows it is the traffic that is expected;
// the smaller buffer of an all_to_all can hold all of it.
int64_t PayloadBytes(const Op& op, const Program& program) {
  if (op.kind == OpKind::kAllGather) return program.value(op.outputs[0]).bytes();
  if (const auto* const routed = std::get_if<RoutedRowsAttributes>(&op.attributes)) {
    const Value& x = program.value(op.inputs[0]);
    return op.kind == OpKind::kAllToAll
               ? std::min(x.bytes(), program.value(op.outputs[0]).bytes())
               : routed->expected_rows * x.row_elements() * SizeOf(x.dtype);
  }
  int64_t bytes = 0;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    bytes = (bytes + 63) / 64 * 64 + program.value(op.inputs[i]).bytes();
  }
  if (WireOf(op) == DType::kBFloat16) {
    bytes = bytes / SizeOf(DType::kFloat32) * SizeOf(DType::kBFloat16);
  }
  return bytes;
}

// The fraction of its payload that one rank sends in a group of `ranks`.
double SentShare(const CollectiveRules& rules, const Op& op, const MeshView& mesh, int ranks) {
  if (rules.sent_share != nullptr) return rules.sent_share(op, mesh);
  return rules.pattern == CollectivePattern::kAllReduce ? 2.0 * (ranks - 1.0) / ranks
                                                        : (ranks - 1.0) / ranks;
}

}  // namespace

double ModelFlops(const Op& op, const Program& program) {
  const auto flops = RulesOf(op.kind).model_flops;
  return flops == nullptr ? 0 : flops(op, program);
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
  const std::optional<CollectiveRules>& rules = RulesOf(op.kind).collective;
  if (!rules.has_value()) return std::nullopt;
  const CollectiveAttributes& attributes = CollectiveOf(op);
  const int ranks = GroupSize(program.mesh, attributes.group);
  if (ranks == 1) return std::nullopt;
  const int64_t bytes = PayloadBytes(op, program);
  return CollectiveCost{op.kind, attributes.group, attributes.purpose, bytes,
                        SentShare(*rules, op, program.mesh, ranks) * static_cast<double>(bytes)};
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
