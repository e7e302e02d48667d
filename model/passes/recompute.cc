#include <algorithm>
#include <set>

#include "model/passes/passes.h"
#include "model/program/builder.h"

namespace troupe::model {
namespace {

bool IsChosen(const Op& op, Recomputation::Mode mode) {
  if (mode == Recomputation::Mode::kFull) return true;
  return op.kind == OpKind::kRmsNorm || op.kind == OpKind::kAttention ||
         op.kind == OpKind::kAttentionPart || op.kind == OpKind::kShift ||
         op.kind == OpKind::kSwiGlu;
}

// Recomputes one layer of a chunk: finds the values of the layer that its derivative reads and that
// can be recomputed, and inserts each operation in B just before its first reader.
class LayerRecompute {
 public:
  LayerRecompute(Program& program, int chunk_index, int layer, Recomputation::Mode mode)
      : program_(program),
        chunk_index_(chunk_index),
        layer_(layer),
        mode_(mode),
        backward_(program.ops[chunk_index][static_cast<int>(Piece::kBackward)]) {}

  void Run() {
    ChooseOps();
    if (again_.empty()) return;
    FindReaders();
    std::vector<Op> backward;
    for (Op& op : backward_) {
      for (ValueId& input : op.inputs) {
        if (maker_[input] < 0) continue;
        Emit(maker_[input], backward);
        input = copy_[input];
      }
      backward.push_back(std::move(op));
    }
    backward_ = std::move(backward);
  }

 private:
  struct Again {
    Op op;
    bool for_input_gradient = false;  // otherwise only gradients of weights read it
    bool emitted = false;
  };

  void ChooseOps() {
    const std::vector<Op>& forward = program_.Ops(chunk_index_, Piece::kForward);
    std::vector<bool> wanted(program_.values.size(), false);
    // Values read by the next layer stay saved.
    std::vector<bool> leaves(program_.values.size(), false);
    for (const Op& op : backward_) {
      for (const ValueId input : op.inputs) wanted[input] = true;
    }
    for (const Op& op : forward) {
      if (op.layer == layer_) continue;
      for (const ValueId input : op.inputs) leaves[input] = true;
    }
    if (program_.chunks[chunk_index_].output != kNoValue) {
      leaves[program_.chunks[chunk_index_].output] = true;
    }
    maker_.assign(program_.values.size(), -1);
    for (auto op = forward.rbegin(); op != forward.rend(); ++op) {
      if (op->layer != layer_ || !IsChosen(*op, mode_)) continue;
      const bool is_wanted = std::any_of(op->outputs.begin(), op->outputs.end(),
                                         [&](ValueId id) { return wanted[id] && !leaves[id]; });
      if (!is_wanted) continue;
      for (const ValueId input : op->inputs) wanted[input] = true;
      for (const ValueId output : op->outputs) {
        if (!leaves[output]) maker_[output] = static_cast<int>(again_.size());
      }
      again_.push_back({*op});
    }
  }

  void FindReaders() {
    const auto read = [&](const Op& op, bool for_input_gradient) {
      for (const ValueId input : op.inputs) {
        if (maker_[input] >= 0) again_[maker_[input]].for_input_gradient |= for_input_gradient;
      }
    };
    for (const Op& op : backward_) read(op, op.part != Part::kWeightGradient);
    // Readers precede the operations that they read from, since again_ is in reverse order.
    for (const Again& again : again_) read(again.op, again.for_input_gradient);
  }

  void Emit(int index, std::vector<Op>& backward) {
    if (again_[index].emitted) return;
    again_[index].emitted = true;
    Op op = again_[index].op;
    for (ValueId& input : op.inputs) {
      if (maker_[input] < 0) continue;
      Emit(maker_[input], backward);
      input = copy_[input];
    }
    op.part = again_[index].for_input_gradient ? Part::kInputGradient : Part::kWeightGradient;
    // F has already folded this microbatch into the step's amax, so B must not do it again.
    if (auto* quantize = std::get_if<QuantizeAttributes>(&op.attributes);
        quantize != nullptr && quantize->folds) {
      quantize->folds = false;
      op.first_writer = false;
      op.outputs.pop_back();
    }
    copy_.resize(program_.values.size(), kNoValue);
    for (ValueId& output : op.outputs) {
      const Value& made = program_.value(output);
      ValueType type = {made.dtype, made.dims, made.placement, made.segments};
      const ValueId copy = AppendValue(program_, made.name + ".again", Role::kActivation,
                                       chunk_index_, std::move(type));
      copy_[output] = copy;
      output = copy;
    }
    backward.push_back(std::move(op));
  }

  Program& program_;
  const int chunk_index_;
  const int layer_;
  const Recomputation::Mode mode_;
  std::vector<Op>& backward_;
  std::vector<Again> again_;   // in reverse order
  std::vector<int> maker_;     // by value of F: index in again_; -1: not recomputed
  std::vector<ValueId> copy_;  // by value of F: its replacement in B
};

}  // namespace

void Recompute(Program& program, const Recomputation& recomputation) {
  if (recomputation.mode == Recomputation::Mode::kNone) return;
  for (int c = 0; c < static_cast<int>(program.chunks.size()); ++c) {
    std::set<int> layers;
    for (const Op& op : program.Ops(c, Piece::kForward)) {
      if (op.layer >= 0) layers.insert(op.layer);
    }
    int64_t left = recomputation.layers;
    for (const int layer : layers) {
      if (left-- == 0) break;
      LayerRecompute(program, c, layer, recomputation.mode).Run();
    }
  }
}

}  // namespace troupe::model
