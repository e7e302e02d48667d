#include <utility>
#include <vector>

#include "model/passes/passes.h"

namespace troupe::model {
namespace {

// Removes the operations that are marked in `gone`.
void Erase(const std::vector<bool>& gone, std::vector<Op>* ops) {
  size_t kept = 0;
  for (size_t i = 0; i < ops->size(); ++i) {
    if (gone[i]) continue;
    if (kept != i) (*ops)[kept] = std::move((*ops)[i]);
    ++kept;
  }
  ops->erase(ops->begin() + static_cast<std::ptrdiff_t>(kept), ops->end());
}

// Replaces %s = add(a, b) … (y, rstd) = rms_norm(s, w) by (s, y, rstd) = add_rms_norm(a, b, w) at
// the position of the add.
void FuseAddNorm(const Program& program, std::vector<Op>& ops) {
  std::vector<int> norm_of(program.values.size(), -1);  // by input: the index of its first norm
  for (size_t i = ops.size(); i-- > 0;) {
    if (ops[i].kind == OpKind::kRmsNorm) norm_of[ops[i].inputs[0]] = static_cast<int>(i);
  }
  std::vector<bool> gone(ops.size(), false);
  for (Op& op : ops) {
    if (op.kind != OpKind::kAdd) continue;
    const ValueId sum = op.outputs[0];
    if (norm_of[sum] < 0) continue;
    const auto norm = static_cast<size_t>(norm_of[sum]);
    Op fused = std::move(ops[norm]);
    gone[norm] = true;
    fused.kind = OpKind::kAddRmsNorm;
    fused.inputs = {op.inputs[0], op.inputs[1], fused.inputs[1]};
    fused.outputs.insert(fused.outputs.begin(), sum);
    op = std::move(fused);
  }
  Erase(gone, &ops);
}

// Replaces (dx, dw) = rms_norm_grad(…) … %d = add(g, dx), with dx used nowhere else, by (d, dw) =
// rms_norm_grad(…, dres = g) at the position of the add.
void FuseNormGradAdd(const Program& program, std::vector<Op>& ops) {
  constexpr int kSeveral = -2;
  std::vector<int> reader_of(program.values.size(), -1);  // by value: the only operation, if any
  for (size_t i = 0; i < ops.size(); ++i) {
    for (const ValueId input : ops[i].inputs) {
      int& reader = reader_of[input];
      if (reader != static_cast<int>(i)) reader = reader == -1 ? static_cast<int>(i) : kSeveral;
    }
  }
  std::vector<bool> gone(ops.size(), false);
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind != OpKind::kRmsNormGrad || ops[i].inputs.size() != 4) continue;
    const ValueId dx = ops[i].outputs[0];
    if (reader_of[dx] < 0 || ops[reader_of[dx]].kind != OpKind::kAdd) continue;
    Op& add = ops[reader_of[dx]];
    Op fused = std::move(ops[i]);
    gone[i] = true;
    fused.inputs.push_back(add.inputs[0] == dx ? add.inputs[1] : add.inputs[0]);
    fused.outputs[0] = add.outputs[0];
    add = std::move(fused);
  }
  Erase(gone, &ops);
}

}  // namespace

void Fuse(Program& program) {
  for (auto& pieces : program.ops) {
    FuseAddNorm(program, pieces[static_cast<int>(Piece::kForward)]);
    FuseNormGradAdd(program, pieces[static_cast<int>(Piece::kBackward)]);
  }
}

}  // namespace troupe::model
