// The rules of an operation kind: types of its outputs (shape and placement), derivative, cost,
// what may run in place. Each kind's rules live in the file of its name in this folder; RulesOf
// finds them.
//
// Pure functions; thread-safe.
#ifndef TROUPE_MODEL_OPS_RULES_H_
#define TROUPE_MODEL_OPS_RULES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "model/program/program.h"

namespace troupe::model {

class GradientContext;

// What a value is, apart from its identity.
struct ValueType {
  DType dtype = DType::kFloat32;
  std::vector<Dim> dims;
  Placement placement;
  std::vector<Segment> segments;
};

using Inputs = std::span<const Value* const>;

struct OpRules {
  // Types of the outputs, or INVALID_ARGUMENT naming the input, the axis and the placements (or
  // extents) that do not fit.
  StatusOr<std::vector<ValueType>> (*infer)(const MeshView& mesh, const Attributes& attributes,
                                            Inputs inputs) = nullptr;
  // Emits the operations that make the gradients of `op`'s inputs; null: no gradient passes.
  Status (*differentiate)(const Op& op, GradientContext& context) = nullptr;
  // Model FLOPs of this rank's part (convention: model/cost.h); null: none counted.
  double (*model_flops)(const Op& op, const Program& program) = nullptr;
  // Bytes of working memory that a backend may ask for with `threads` threads; null: none.
  int64_t (*scratch_bytes)(const Op& op, const Program& program, int threads) = nullptr;
  // Output 0 may take the storage of this input; -1: never.
  int in_place_input = -1;
  // The output that accumulates over microbatches (+=); -1: none.
  int accumulated_output = -1;
};

const OpRules& RulesOf(OpKind kind);

// Whether `op` computes long enough to hide a collective: one with model FLOPs, or the embedding's
// gradient.
bool Computes(const Op& op);

// Bytes read and written by one run of `op`.
int64_t BytesMoved(const Op& op, const Program& program);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_OPS_RULES_H_
