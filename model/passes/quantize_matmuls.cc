#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/passes/passes.h"
#include "model/program/builder.h"

namespace troupe::model {
namespace {

bool IsGradient(const Op& op) {
  return op.kind == OpKind::kMatmulGradInput || op.kind == OpKind::kMatmulGradWeight;
}

// An FP8 value: its row-major and transposed forms, if computed, and their scales.
struct Quantized {
  ValueId rows = kNoValue, rows_scale = kNoValue;
  ValueId columns = kNoValue, columns_scale = kNoValue;
};

class ChunkMatmuls {
 public:
  ChunkMatmuls(Program& program, int chunk_index, Float8Recipe recipe, int zero_stage)
      : program_(program),
        chunk_index_(chunk_index),
        recipe_(recipe),
        weights_in_unshard_(zero_stage < 3),
        forward_(program.ops[chunk_index][static_cast<int>(Piece::kForward)]),
        backward_(program.ops[chunk_index][static_cast<int>(Piece::kBackward)]) {
    for (const ParameterEntry& entry : program.parameters) weights_[entry.unsharded] = &entry;
  }

  Status Run() {
    FindMatmuls();
    std::vector<Op> forward;
    for (Op& op : forward_) {
      if (!op.outputs.empty() && matmuls_.contains(op.outputs[0])) {
        TROUPE_RETURN_IF_ERROR(QuantizeForward(op, forward));
      }
      forward.push_back(std::move(op));
    }
    forward_ = std::move(forward);
    std::vector<Op> backward;
    for (Op& op : backward_) {
      if (IsGradient(op) && uses_of_.contains(op.inputs[0])) {
        TROUPE_RETURN_IF_ERROR(QuantizeBackward(op, backward));
      }
      backward.push_back(std::move(op));
    }
    backward_ = std::move(backward);
    return OkStatus();
  }

 private:
  // The gradients that B computes from the gradient of a matmul's output.
  struct Uses {
    std::string name;  // the layer's name
    bool input_gradient = false, weight_gradient = false;
  };

  void FindMatmuls() {
    std::map<ValueId, std::string> by_weight;
    for (const Op& op : forward_) {
      if (op.kind != OpKind::kMatmul || op.layer < 0) continue;
      const auto weight = weights_.find(op.inputs[1]);
      if (weight == weights_.end()) continue;
      matmuls_.insert(op.outputs[0]);
      by_weight[op.inputs[1]] = program_.value(weight->second->value).name;
      if (weight->second->trained()) gradient_of_[weight->second->gradient] = op.inputs[1];
    }
    for (const Op& op : backward_) {
      if (!IsGradient(op)) continue;
      const bool of_input = op.kind == OpKind::kMatmulGradInput;
      const auto gradient = gradient_of_.find(op.outputs[0]);
      const ValueId weight = of_input                         ? op.inputs[1]
                             : gradient == gradient_of_.end() ? kNoValue
                                                              : gradient->second;
      const auto name = by_weight.find(weight);
      if (name == by_weight.end()) continue;
      transposed_.insert(op.inputs[1]);
      Uses& uses = uses_of_[op.inputs[0]];
      uses.name = name->second;
      (of_input ? uses.input_gradient : uses.weight_gradient) = true;
    }
  }

  Status QuantizeForward(Op& op, std::vector<Op>& ops) {
    const ValueId x = op.inputs[0], w = op.inputs[1];
    const std::string name = program_.value(weights_.at(w)->value).name;
    Op at = {.kind = OpKind::kQuantize, .layer = op.layer};
    if (!values_.contains(x)) {
      TROUPE_RETURN_IF_ERROR(
          Quantize(x, {DType::kFloat8E4M3, true, transposed_.contains(x), BlockRows(1)},
                   name + ".input", at, ops));
    }
    if (weights_in_unshard_) {
      std::vector<Op>& unshard = program_.ops[chunk_index_][static_cast<int>(Piece::kUnshard)];
      if (!values_.contains(w))
        TROUPE_RETURN_IF_ERROR(
            QuantizeWeight(w, true, transposed_.contains(w), {.kind = OpKind::kQuantize}, unshard));
    } else {
      TROUPE_RETURN_IF_ERROR(QuantizeWeight(w, true, false, at, ops));
    }
    op.inputs = {values_[x].rows, values_[w].rows, values_[x].rows_scale, values_[w].rows_scale};
    return OkStatus();
  }

  Status QuantizeBackward(Op& op, std::vector<Op>& ops) {
    const ValueId dy = op.inputs[0], other = op.inputs[1];
    const Uses& uses = uses_of_.at(dy);
    if (!values_.contains(dy)) {
      const Op at = {.kind = OpKind::kQuantize,
                     .part = uses.input_gradient ? Part::kInputGradient : Part::kWeightGradient};
      TROUPE_RETURN_IF_ERROR(Quantize(
          dy, {DType::kFloat8E5M2, uses.input_gradient, uses.weight_gradient, BlockRows(1)},
          uses.name + ".output_gradient", at, ops));
    }
    const Quantized& gradient = values_[dy];
    if (op.kind == OpKind::kMatmulGradInput) {
      if (!weights_in_unshard_) {
        TROUPE_RETURN_IF_ERROR(
            QuantizeWeight(other, false, true, {.kind = OpKind::kQuantize, .part = op.part}, ops));
      }
      const Quantized& weight = values_[other];
      op.inputs = {gradient.rows, weight.columns, gradient.rows_scale, weight.columns_scale};
    } else {
      const Quantized& x = values_[other];
      op.inputs = {gradient.columns, x.columns, gradient.columns_scale, x.columns_scale};
    }
    return OkStatus();
  }

  // Quantises an activation or a gradient; delayed scaling uses the history of `name`.
  Status Quantize(ValueId x, QuantizeAttributes attributes, const std::string& name, Op op,
                  std::vector<Op>& ops) {
    op.inputs = {x};
    if (recipe_ == Float8Recipe::kDelayed) {
      attributes.folds = true;
      AmaxHistory entry;
      entry.history = AppendValue(program_, name + ".amax_history", Role::kParameter, chunk_index_,
                                  {DType::kFloat32, {{"steps", kAmaxSteps, kAmaxSteps}}, {}, {}});
      AddState(program_, {StateKind::kAmaxHistory, entry.history, kAmaxPrefix + name});
      op.inputs.push_back(entry.history);
      op.first_writer = true;
      TROUPE_RETURN_IF_ERROR(Emit(x, attributes, std::move(op), Role::kActivation, ops));
      entry.amax = ops.back().outputs.back();
      Value& amax = program_.values[entry.amax];
      amax.name = name + ".amax";
      amax.role = Role::kState;
      amax.chunk = -1;
      program_.amax_histories.push_back(entry);
      return OkStatus();
    }
    return Emit(x, attributes, std::move(op), Role::kActivation, ops);
  }

  Status QuantizeWeight(ValueId w, bool rows, bool columns, Op op, std::vector<Op>& ops) {
    op.inputs = {w};
    const Role role = weights_in_unshard_ ? Role::kComputeCopy : Role::kActivation;
    TROUPE_RETURN_IF_ERROR(Emit(w, {DType::kFloat8E4M3, rows, columns, BlockRows(kFloat8Block)},
                                std::move(op), role, ops));
    if (weights_in_unshard_) {
      const std::vector<ValueId>& made = ops.back().outputs;
      program_.quantized_weights.insert(program_.quantized_weights.end(), made.begin(), made.end());
    }
    return OkStatus();
  }

  Status Emit(ValueId x, const QuantizeAttributes& attributes, Op op, Role role,
              std::vector<Op>& ops) {
    op.attributes = attributes;
    TROUPE_ASSIGN_OR_RETURN(std::vector<ValueType> types,
                            InferTypes(program_, op.kind, op.attributes, op.inputs));
    const std::string name = program_.value(x).name;
    const auto append = [&](size_t i, const char* suffix) {
      op.outputs.push_back(
          AppendValue(program_, name + suffix, role, chunk_index_, std::move(types[i])));
      return op.outputs.back();
    };
    Quantized& made = values_[x];
    size_t next = 0;
    if (attributes.rows) made.rows = append(next++, ".f8");
    if (attributes.columns) made.columns = append(next++, ".f8.transposed");
    const bool both = attributes.rows && attributes.columns;
    if (attributes.rows) made.rows_scale = append(next++, ".scale");
    if (attributes.columns) {
      made.columns_scale = both && attributes.block_rows == 0
                               ? made.rows_scale
                               : append(next++, both ? ".scale.transposed" : ".scale");
    }
    if (attributes.folds) append(next, ".amax");
    ops.push_back(std::move(op));
    return OkStatus();
  }

  int32_t BlockRows(int64_t rows) const {
    return recipe_ == Float8Recipe::kBlockwise ? static_cast<int32_t>(rows) : 0;
  }

  Program& program_;
  const int chunk_index_;
  const Float8Recipe recipe_;
  const bool weights_in_unshard_;
  std::vector<Op>& forward_;
  std::vector<Op>& backward_;
  std::map<ValueId, const ParameterEntry*> weights_;  // by the value that F reads
  std::set<ValueId> matmuls_;                         // outputs of the quantised matmuls of F
  std::map<ValueId, ValueId> gradient_of_;            // weights by their gradients
  std::map<ValueId, Uses> uses_of_;                   // by gradient of a matmul's output
  std::set<ValueId> transposed_;                      // inputs and weights that B reads by columns
  std::map<ValueId, Quantized> values_;               // by original value
};

}  // namespace

Status QuantizeMatmuls(Program& program, Float8Recipe recipe, int zero_stage) {
  for (int c = 0; c < static_cast<int>(program.chunks.size()); ++c) {
    TROUPE_RETURN_IF_ERROR(ChunkMatmuls(program, c, recipe, zero_stage).Run());
  }
  return OkStatus();
}

}  // namespace troupe::model
