#include <algorithm>

#include "model/passes/passes.h"

namespace troupe::model {
namespace {

bool Reads(const Op& op, ValueId value) {
  return std::find(op.inputs.begin(), op.inputs.end(), value) != op.inputs.end();
}

// Replaces %s = add(a, b) … (y, rstd) = rms_norm(s, w) by (s, y, rstd) = add_rms_norm(a, b, w) at
// the position of the add.
void FuseAddNorm(std::vector<Op>& ops) {
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != OpKind::kAdd) continue;
    const ValueId sum = ops[i].outputs[0];
    const auto norm = std::find_if(ops.begin() + i + 1, ops.end(), [&](const Op& op) {
      return op.kind == OpKind::kRmsNorm && op.inputs[0] == sum;
    });
    if (norm == ops.end()) continue;
    Op fused = *norm;
    fused.kind = OpKind::kAddRmsNorm;
    fused.inputs = {ops[i].inputs[0], ops[i].inputs[1], norm->inputs[1]};
    fused.outputs = {sum, norm->outputs[0], norm->outputs[1]};
    ops.erase(norm);
    ops[i] = std::move(fused);
  }
}

// Replaces (dx, dw) = rms_norm_grad(…) … %d = add(g, dx), with dx used nowhere else, by (d, dw) =
// rms_norm_grad(…, dres = g) at the position of the add.
void FuseNormGradAdd(std::vector<Op>& ops) {
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != OpKind::kRmsNormGrad || ops[i].inputs.size() != 4) continue;
    const ValueId dx = ops[i].outputs[0];
    if (std::count_if(ops.begin(), ops.end(), [&](const Op& op) { return Reads(op, dx); }) != 1)
      continue;
    const auto add =
        std::find_if(ops.begin() + i + 1, ops.end(), [&](const Op& op) { return Reads(op, dx); });
    if (add->kind != OpKind::kAdd) continue;
    Op fused = ops[i];
    fused.inputs.push_back(add->inputs[0] == dx ? add->inputs[1] : add->inputs[0]);
    fused.outputs[0] = add->outputs[0];
    *add = std::move(fused);
    ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(i));
    --i;
  }
}

}  // namespace

void Fuse(Program& program) {
  for (auto& pieces : program.ops) {
    FuseAddNorm(pieces[static_cast<int>(Piece::kForward)]);
    FuseNormGradAdd(pieces[static_cast<int>(Piece::kBackward)]);
  }
}

}  // namespace troupe::model
