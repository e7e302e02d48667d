#include <map>
#include <set>
#include <utility>
#include <vector>

#include "model/passes/passes.h"
#include "model/program/builder.h"

namespace troupe::model {
namespace {

bool IsMatmulOfRows(const Op& op) {
  return op.kind == OpKind::kMatmul || op.kind == OpKind::kMatmulGradInput;
}

// Splits one list of operations of a chunk.
class ListParts {
 public:
  ListParts(Program& program, int chunk_index, int parts, std::vector<Op>& ops)
      : program_(program), chunk_index_(chunk_index), parts_(parts), ops_(ops) {}

  void Cut() {
    ChooseOps();
    std::vector<Op> result;
    std::set<size_t> done;
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (done.contains(i)) continue;
      if (!cut_.contains(i)) {
        result.push_back(std::move(ops_[i]));
        continue;
      }
      const auto sum = sum_of_.find(i);
      for (int part = 0; part < parts_; ++part) {
        result.push_back(PartOf(ops_[i], part));
        // In flight while the next part is computed.
        if (sum != sum_of_.end()) result.push_back(PartOf(ops_[sum->second], part));
      }
      if (sum != sum_of_.end()) done.insert(sum->second);
    }
    ops_ = std::move(result);
  }

 private:
  void ChooseOps() {
    std::map<ValueId, size_t> matmuls;  // by output
    std::set<ValueId> gathered;
    for (size_t i = 0; i < ops_.size(); ++i) {
      const Op& op = ops_[i];
      if (IsMatmulOfRows(op)) {
        matmuls[op.outputs[0]] = i;
        if (gathered.contains(op.inputs[0])) cut_.insert(i);
        continue;
      }
      const CollectiveAttributes* const collective = FindCollective(op.attributes);
      if (collective == nullptr || collective->group != GroupOf(Axis::kTensor)) continue;
      const bool by_parts = RowPartsOf(op) > 1;  // must be split
      if (by_parts && op.kind == OpKind::kAllGather) gathered.insert(op.outputs[0]);
      if (by_parts) cut_.insert(i);
      if (op.kind == OpKind::kAllGather || op.inputs.size() != 1) continue;
      const auto matmul = matmuls.find(op.inputs[0]);
      if (matmul == matmuls.end()) continue;
      const bool is_sum = op.kind == OpKind::kAllReduce && ReduceOf(op) == ReduceKind::kSum;
      if (!by_parts && !is_sum) continue;
      cut_.insert(i);
      cut_.insert(matmul->second);
      sum_of_[matmul->second] = i;
    }
  }

  // `op` on one part of its rows: dim 0 of its first input and of its output.
  Op PartOf(const Op& op, int part) {
    Op cut = op;
    cut.inputs[0] = RowsOf(op.inputs[0], part);
    cut.outputs[0] = RowsOf(op.outputs[0], part);
    // The scales of a quantised operand, if each of its rows has its own.
    if (cut.inputs.size() == 4 && program_.value(op.inputs[2]).dims.size() == 2) {
      cut.inputs[2] = RowsOf(op.inputs[2], part);
    }
    if (auto* const gather = std::get_if<AllGatherAttributes>(&cut.attributes)) {
      gather->row_parts = 1;
      gather->extent /= parts_;
    } else if (auto* const scatter = std::get_if<ReduceScatterAttributes>(&cut.attributes)) {
      scatter->row_parts = 1;
    }
    return cut;
  }

  ValueId RowsOf(ValueId whole, int part) {
    const auto [entry, is_new] = rows_.try_emplace({whole, part}, kNoValue);
    if (!is_new) return entry->second;
    const Value value = program_.value(whole);
    ValueType type = {value.dtype, value.dims, value.placement, value.segments};
    type.dims[0].local /= parts_;
    type.dims[0].global /= parts_;
    AxisPlacement& tensor = type.placement[Axis::kTensor];
    if (tensor == Shard(0, ShardHow::kParts)) tensor = Shard(0);
    const ValueId rows = AppendValue(program_, fmt::format("{}.part{}", value.name, part),
                                     value.role, chunk_index_, std::move(type));
    program_.values[rows].view_of = whole;
    program_.values[rows].view_offset = part * program_.value(rows).elements();
    return entry->second = rows;
  }

  Program& program_;
  const int chunk_index_, parts_;
  std::vector<Op>& ops_;
  std::set<size_t> cut_;             // indices of operations
  std::map<size_t, size_t> sum_of_;  // by matmul: the operation that reduces or scatters its output
  std::map<std::pair<ValueId, int>, ValueId> rows_;
};

}  // namespace

void CutTensorTransfers(Program& program, int parts) {
  for (int c = 0; c < static_cast<int>(program.chunks.size()); ++c) {
    for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
      ListParts(program, c, parts, program.ops[c][static_cast<int>(piece)]).Cut();
    }
  }
}

}  // namespace troupe::model
