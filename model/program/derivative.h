// Reverse-mode differentiation of a chunk's F, once, by each operation's rule. Emits B with every
// operation tagged I (gradient of inputs) or W (gradient of parameters).
#ifndef TROUPE_MODEL_PROGRAM_DERIVATIVE_H_
#define TROUPE_MODEL_PROGRAM_DERIVATIVE_H_

#include <map>
#include <vector>

#include "base/status.h"
#include "model/program/program.h"

namespace troupe::model {

// What a derivative rule sees: gradients known so far, and where to put its own.
class GradientContext {
 public:
  GradientContext(Program& program, int chunk_index);

  // The gradient of a value of F; complete when the rule of the operation that made it runs.
  // kNoValue: none.
  ValueId GradientOf(ValueId value) const;
  const Value& ValueOf(ValueId value) const { return program_.value(value); }
  // The operation of F of this kind that reads `value`, or that makes it; null: none.
  const Op* ReaderOf(ValueId value, OpKind kind) const;
  const Op* MakerOf(ValueId value) const;
  bool HasGradient(ValueId value) const { return GradientOf(value) != kNoValue; }

  // Appends an operation to B. Output i is the gradient (or one summand of it) of targets[i]: of a
  // parameter it accumulates in the parameter's gradient, of rows of a value it is written into the
  // rows of that value's gradient, of a value that has a gradient already it is added by an
  // explicit add. Errors are those of the rules, and INTERNAL if an output's placement is not that
  // of its target's gradient.
  Status Emit(OpKind kind, const Attributes& attributes, const std::vector<ValueId>& inputs,
              const std::vector<ValueId>& targets);
  // Appends an operation to B that makes `value` of F again, of inputs of F or made again, and returns what
  // it makes: INTERNAL if that is placed otherwise.
  StatusOr<ValueId> EmitAgain(OpKind kind, const Attributes& attributes,
                              const std::vector<ValueId>& inputs, ValueId value);
  // What `value` was made again as; itself, if it was not.
  ValueId AgainOf(ValueId value) const;
  // Makes the existing value `gradient` a summand of the gradient of `target`.
  Status Contribute(ValueId target, ValueId gradient);

 private:
  friend Status Differentiate(Program& program, int chunk_index);

  // The value that will hold the gradient of `target`, where it is rows of another value.
  ValueId RowsOfGradient(ValueId target);

  Program& program_;
  const int chunk_index_;
  std::vector<ValueId> gradients_;           // by value of F
  std::map<ValueId, ValueId> again_;         // values of F that B makes again
  const std::vector<Op> forward_;
  std::vector<const Op*> maker_;                 // by value of F
  std::vector<std::vector<const Op*>> readers_;  // by value of F, in order
  std::vector<ValueId> parameter_gradient_;  // by unsharded parameter
  std::vector<Op>& backward_;
  int16_t row_chunk_ = -1;
};

// Fills kBackward of the chunk. The seed is chunk.output_gradient, or the loss of a chunk that has
// one. Sets chunk.input_gradient.
Status Differentiate(Program& program, int chunk_index);

}  // namespace troupe::model

#endif  // TROUPE_MODEL_PROGRAM_DERIVATIVE_H_
