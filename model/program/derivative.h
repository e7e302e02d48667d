// Reverse-mode differentiation of a chunk's F by each operation's rule. Emits B, with every
// operation tagged I (gradient of inputs) or W (gradient of parameters).
#ifndef TROUPE_MODEL_PROGRAM_DERIVATIVE_H_
#define TROUPE_MODEL_PROGRAM_DERIVATIVE_H_

#include <map>
#include <vector>

#include "base/status.h"
#include "model/program/program.h"

namespace troupe::model {

// The interface of derivative rules: the gradients known so far, and the emission of new ones.
class GradientContext {
 public:
  // `of_input`: the gradient of the chunk's input is needed, because a parameter of a chunk below
  // is trained.
  GradientContext(Program& program, int chunk_index, bool of_input);

  // The gradient of a value of F; complete when the rule of the operation that computed the value
  // runs. kNoValue: none.
  ValueId GradientOf(ValueId value) const;
  const Value& ValueOf(ValueId value) const { return program_.value(value); }
  // The operation of F of this kind that reads `value` (ReaderOf), or the one that computes it
  // (MakerOf); null: none.
  const Op* ReaderOf(ValueId value, OpKind kind) const;
  const Op* MakerOf(ValueId value) const;
  bool HasGradient(ValueId value) const { return GradientOf(value) != kNoValue; }

  // Whether a trained parameter, or the chunk's input if its gradient is needed, reaches the value.
  bool NeedsGradient(ValueId value) const;

  // Appends an operation to B, unless no target needs its gradient. Output i is the gradient of
  // targets[i], or one summand of it. For a parameter it accumulates into the parameter's gradient;
  // for rows of a value it is written into the rows of that value's gradient; if the target has a
  // gradient already, an explicit add follows. An output that its target does not need is read by
  // nobody. Returns the errors of the rules, and INTERNAL if an output's placement differs from
  // that of its target's gradient.
  Status Emit(OpKind kind, const Attributes& attributes, const std::vector<ValueId>& inputs,
              const std::vector<ValueId>& targets);
  // Appends an operation to B that recomputes `value` of F and returns the new value. `inputs` are
  // inputs of F or recomputed values. INTERNAL if the new value's placement differs.
  StatusOr<ValueId> EmitAgain(OpKind kind, const Attributes& attributes,
                              const std::vector<ValueId>& inputs, ValueId value);
  // The recomputed value of `value`, or `value` itself if it was not recomputed.
  ValueId AgainOf(ValueId value) const;
  // Adds the existing value `gradient` to the gradient of `target`, if that needs one.
  Status Contribute(ValueId target, ValueId gradient);

 private:
  friend Status Differentiate(Program& program, int chunk_index, bool of_input);

  bool AnyNeedsGradient(const std::vector<ValueId>& values) const;

  // The view into the gradient of the whole value if `target` is rows of another value, else
  // kNoValue.
  ValueId RowsOfGradient(ValueId target);

  Program& program_;
  const int chunk_index_;
  std::vector<ValueId> gradients_;    // by value of F
  std::map<ValueId, ValueId> again_;  // values of F that B recomputes
  const std::vector<Op>& forward_;
  std::vector<const Op*> maker_;             // by value of F
  std::vector<ValueId> parameter_gradient_;  // by unsharded parameter that is trained
  std::vector<ValueId> roots_;               // by value of F: that of its storage
  std::vector<bool> needs_gradient_;         // by root of storage
  std::vector<Op>& backward_;
  int16_t row_chunk_ = -1;
};

// Fills kBackward of the chunk. The seed is chunk.output_gradient, or the loss if the chunk has
// one. Sets chunk.input_gradient, if the gradient `of_input` is needed. Operations whose results
// nobody needs are left out.
Status Differentiate(Program& program, int chunk_index, bool of_input);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_DERIVATIVE_H_
