// One operation that is lowered to StableHLO. Each file of this folder lowers the kinds of
// model/program/op_kinds.def named in it; the letters of the shapes are those of op_kinds.def.
//
// Within an operation numbers are float32, whatever the compute dtype, and a matmul accumulates in
// float32; results are rounded once, when they are stored.
#ifndef TROUPE_KERNELS_XLA_OPS_LOWERING_H_
#define TROUPE_KERNELS_XLA_OPS_LOWERING_H_

#include <functional>
#include <variant>
#include <vector>

#include "base/status.h"
#include "kernels/backend/op_sequence.h"
#include "kernels/xla/text/function.h"
#include "model/program/op.h"
#include "model/program/program.h"

namespace troupe::kernels::xla {

struct Lowering {
  const model::Program& program;
  const model::Op& op;
  Function& text;
  // The present contents of any value, and new contents, which have its dtype and shape.
  const std::function<Tensor(model::ValueId)>& read;
  const std::function<void(model::ValueId, const Tensor&)>& write;
  // i1: whether this is the step's first microbatch.
  const std::function<Tensor()>& first_microbatch;

  const model::Value& Input(size_t index) const { return program.value(op.inputs[index]); }
  const model::Value& Output(size_t index) const { return program.value(op.outputs[index]); }
  int64_t Extent(size_t input, size_t dim) const { return Input(input).dims[dim].local; }
  size_t inputs() const { return op.inputs.size(); }

  Tensor In(size_t index) const { return read(op.inputs[index]); }
  // As float32.
  Tensor Float(size_t index) const { return text.Convert(In(index), Element::kF32); }
  // Stores `tensor` as output `index`, in the output's dtype and shape.
  void Out(size_t index, const Tensor& tensor) const { Store(op.outputs[index], tensor); }
  void Store(model::ValueId value, const Tensor& tensor) const;
  // The contents of output `index` that an operation adds to: zeros where the first writer of a
  // step overwrites.
  Tensor Accumulated(size_t index) const;
  // Adds `tensor` to output `index`, or overwrites it where the first writer of a step does.
  void Accumulate(size_t index, const Tensor& tensor) const;

  template <typename T>
  const T& attributes() const {
    return std::get<T>(op.attributes);
  }
};

// Lowers one operation of this kind; UNIMPLEMENTED for a kind that is not lowered.
#define TROUPE_OP(Kind, name, attributes, cpu, cuda) Status Kind(const Lowering& lowering);
#include "model/program/op_kinds.def"

// Lowers `lowering.op`. Errors: UNIMPLEMENTED, which names the operation.
Status Lower(const Lowering& lowering);

// The shape of a value.
Shape ShapeOf(const model::Value& value);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_OPS_LOWERING_H_
