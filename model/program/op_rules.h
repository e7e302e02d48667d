// The rules of an operation kind: types of its outputs (shape and placement), derivative, cost,
// in-place execution and, for collectives, communication. The file in model/ops that is named for a
// kind defines its rules; RulesOf returns them.
//
// Pure functions; thread-safe.
#ifndef TROUPE_MODEL_PROGRAM_OP_RULES_H_
#define TROUPE_MODEL_PROGRAM_OP_RULES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "model/program/program.h"

namespace troupe::model {

class GradientContext;

// The type of a value, without its identity.
struct ValueType {
  DType dtype = DType::kFloat32;
  std::vector<Dim> dims;
  Placement placement;
  std::vector<Segment> segments;
};

using Inputs = std::span<const Value* const>;

// The way in which a collective combines the values of its ranks. An all-reduce and a
// reduce-scatter reduce them; a gather and an exchange only move them. Exchanges move rows of
// tokens, never parameters.
enum class CollectivePattern : uint8_t { kAllReduce, kReduceScatter, kGather, kExchange };

// The rules of an operation that sends data between ranks.
struct CollectiveRules {
  CollectivePattern pattern;
  // passes/overlap.cc may begin it earlier and wait for it later.
  bool begins_early = false;
  // The fraction of the payload that one rank sends; null: all blocks but its own, twice in an
  // all-reduce.
  double (*sent_share)(const Op& op, const MeshView& mesh) = nullptr;

  bool reduces() const {
    return pattern == CollectivePattern::kAllReduce || pattern == CollectivePattern::kReduceScatter;
  }
};

struct OpRules {
  // Returns the types of the outputs. INVALID_ARGUMENT names the input, the axis and the placements
  // (or extents) that do not match.
  StatusOr<std::vector<ValueType>> (*infer)(const MeshView& mesh, const Attributes& attributes,
                                            Inputs inputs) = nullptr;
  // Emits the operations that compute the gradients of `op`'s inputs; null: no gradient passes.
  Status (*differentiate)(const Op& op, GradientContext& context) = nullptr;
  // Model FLOPs of this rank's share (convention: model/cost.h); null: none are counted.
  double (*model_flops)(const Op& op, const Program& program) = nullptr;
  // Maximum of working memory in bytes that the CPU is expected to need with `threads` threads, for
  // the memory plan; null: none. The CPU's backend measures what it needs and uses the larger
  // number (kernels/cpu/preparation.cc). A GPU has needs of its own
  // (model/program/gpu_working_memory.h).
  int64_t (*scratch_bytes)(const Op& op, const Program& program, int threads) = nullptr;
  // The input whose storage output 0 may reuse; -1: none.
  int in_place_input = -1;
  // The output that accumulates over microbatches (+=); -1: none.
  int accumulated_output = -1;
  // The number of values that an optimizer keeps of each parameter (UpdatedParameter::states);
  // null: the operation updates no parameters.
  int (*kept_states)(const Attributes& attributes) = nullptr;
  // Absent: the operation sends nothing. Every collective has them except kCopy.
  std::optional<CollectiveRules> collective = std::nullopt;
};

const OpRules& RulesOf(OpKind kind);

// Whether `op` computes long enough to hide a collective: it has model FLOPs, or it is the
// embedding's gradient.
bool Computes(const Op& op);

// Bytes read and written by one run of `op`.
int64_t BytesMoved(const Op& op, const Program& program);

// One parameter's operands of an optimizer's operation. All of these are inputs: control d[lanes],
// learning_rate f[1], applied_steps f[1], then the operands of each parameter. The operation
// changes them in place, except the gradient.
struct UpdatedParameter {
  ValueId gradient;  // the reduced one
  ValueId master;
  ValueId compute_copy;  // the master again, if F reads that itself
  std::vector<ValueId> states;

  bool has_copy() const { return compute_copy != master; }
};
// The inputs before those of the first parameter.
inline constexpr size_t kUpdateScalars = 3;

// Whether `op` is an optimizer's.
bool UpdatesParameters(const Op& op);
// The parameters that `op` updates, in order. REQUIRES: UpdatesParameters(op).
std::vector<UpdatedParameter> UpdatedParameters(const Op& op);
// Appends the operands of one parameter to the inputs of `op`.
void AppendOperands(const ParameterEntry& entry, Op* op);
// The entry whose master this is. REQUIRES: there is one.
const ParameterEntry& EntryOfMaster(const Program& program, ValueId master);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_OP_RULES_H_
