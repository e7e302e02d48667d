// One operation that is lowered to StableHLO. Each file of this folder lowers the kinds of
// model/program/op_kinds.def named in it; the letters of the shapes are those of op_kinds.def.
//
// Within an operation numbers are float32, whatever the compute dtype, and a matmul accumulates in
// float32; results are rounded once, when they are stored.
//
// A program that is compiled for a slice of several ranks has one text for all of them (ranks.h). A
// file lowers an operation as one rank has it; what differs between ranks is either a number, which
// it asks for with Number, or the text is a branch of its own.
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

class Ranks;

// Not thread-safe: its functions append to the text of all ranks. A wrong shape ends the process
// (function.h).
struct Lowering {
  const model::Program& program;
  const model::Op& op;
  bool runs;  // false: this rank does not have the operation, `op` is another rank's
  Function& text;
  // The present contents of any value, and new contents, which have its dtype and shape.
  const std::function<Tensor(model::ValueId)>& read;
  const std::function<void(model::ValueId, const Tensor&)>& write;
  // i1: whether this is the step's first microbatch.
  const std::function<Tensor()>& first_microbatch;
  bool only_microbatch;  // whether the program runs only in a step's single microbatch
  Ranks& ranks;          // the slice that the text is for; this is one of its ranks

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
  // A scalar that may be another number on each rank: what `of` returns for the operation as a rank
  // has it. A constant if it is equal on all.
  using NumberOf = std::function<double(const Lowering& rank)>;
  Tensor Number(Element element, const NumberOf& of) const;
  // `count` rows of x from such a row on; and x with rows of zeros around it, `rows` in all, so
  // that it begins at such a row.
  Tensor RowsFrom(const Tensor& x, const NumberOf& first, int64_t count) const;
  Tensor AmongZeros(const Tensor& x, const NumberOf& first, int64_t rows) const;

  template <typename T>
  const T& attributes() const {
    return std::get<T>(op.attributes);
  }
};

// Lowers one operation of this kind: appends to its text, and changes nothing else. UNIMPLEMENTED,
// which names the operation, if it is not lowered.
#define TROUPE_OP(Kind, name, attributes, cpu, cuda) Status Kind(const Lowering& lowering);
#include "model/program/op_kinds.def"

// The shape of a value. Pure.
Shape ShapeOf(const model::Value& value);

}  // namespace troupe::kernels::xla

#endif  // TROUPE_KERNELS_XLA_OPS_LOWERING_H_
