// Logic that all backends share around single operations: which ops a run skips, which outputs
// accumulate, how errors name an op.
#ifndef TROUPE_KERNELS_BACKEND_OP_SEQUENCE_H_
#define TROUPE_KERNELS_BACKEND_OP_SEQUENCE_H_

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/backend/backend.h"
#include "model/program/op_rules.h"

namespace troupe::kernels {

// The fall-back reported for an FP8 matmul whose operands are first dequantised to bfloat16.
inline constexpr char kFloat8Fallback[] = "float8 by a bfloat16 matmul";

// When an accumulated output is overwritten instead.
enum class Overwrites : uint8_t { kNever, kFirstMicrobatch, kEveryRun };

inline Overwrites OverwritesOf(const model::Program& program, const model::Op& op) {
  if (!op.first_writer) return Overwrites::kNever;
  const bool of_microbatch =
      program.value(op.outputs.back()).role == model::Role::kMicrobatchGradient;
  return of_microbatch ? Overwrites::kEveryRun : Overwrites::kFirstMicrobatch;
}

inline bool Accumulates(Overwrites overwrites, const RunOptions& options) {
  return overwrites == Overwrites::kNever ||
         (overwrites == Overwrites::kFirstMicrobatch && !options.first_microbatch);
}

// The end of the range of operations that `options` runs, out of `count`; the range starts at
// options.first_op.
inline size_t EndOfRun(const RunOptions& options, size_t count) {
  return std::min(count, static_cast<size_t>(options.end_op));
}

// Calls `body` with every op of the program, in order: pieces of chunks, update, initialize.
template <typename Body>
void ForEachOp(const model::Program& program, const Body& body) {
  for (const auto& chunk : program.ops) {
    for (const auto& piece : chunk) {
      for (const model::Op& op : piece) body(op);
    }
  }
  for (const model::Op& op : program.update) body(op);
  for (const model::Op& op : program.initialize) body(op);
}

// The number of elements in each rank's block of `whole`, cut along dim 0 over `ranks`, in group
// order.
inline std::vector<size_t> BlockElements(const model::Value& whole, const model::RowCut& cut,
                                         int ranks) {
  std::vector<size_t> counts;
  for (int rank = 0; rank < ranks; ++rank) {
    const model::Range rows = cut.Of(whole.dims[0].local, ranks, rank);
    counts.push_back(static_cast<size_t>(rows.size() * whole.row_elements()));
  }
  return counts;
}

// The value that owns the storage of `id`, at the root of its chain of views. Adds to `offset` the
// elements that the views skip.
inline model::ValueId RootOf(const model::Program& program, model::ValueId id, int64_t* offset) {
  while (program.value(id).view_of != model::kNoValue) {
    *offset += program.value(id).view_offset;
    id = program.value(id).view_of;
  }
  return id;
}

// "matmul block0.attention.qkv": the kind and the first output (or input), for reports and errors.
inline std::string OperationName(const model::Program& program, const model::Op& op) {
  std::string name = model::Name(op.kind);
  if (!op.outputs.empty()) {
    name += " " + program.value(op.outputs[0]).name;
  } else if (!op.inputs.empty()) {
    name += " " + program.value(op.inputs[0]).name;
  }
  return name;
}

// The communicator of a collective op, or null if its group has one rank or the op is no
// collective.
inline Communicator* CommunicatorOf(const model::Op& op, const FindCommunicator& find) {
  if (op.kind == model::OpKind::kControlReduce) {
    return find ? find({model::CollectiveGroup::Kind::kAll, 0}) : nullptr;
  }
  if (!model::RulesOf(op.kind).collective.has_value()) return nullptr;
  return find ? find(model::CollectiveOf(op).group) : nullptr;
}

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_BACKEND_OP_SEQUENCE_H_
