// kWait: completes a collective that was begun earlier in the list. It is inserted after
// differentiation (model/passes/overlap.cc), so it has no derivative.
#include "model/ops/kinds.h"

namespace troupe::model {
namespace {

StatusOr<std::vector<ValueType>> Infer(const MeshView& mesh, const Attributes& attributes,
                                       Inputs in) {
  return std::vector<ValueType>{};
}

}  // namespace

OpRules WaitRules() { return {.infer = Infer}; }

}  // namespace troupe::model
