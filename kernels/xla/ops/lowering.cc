#include "kernels/xla/ops/lowering.h"

namespace troupe::kernels::xla {

Shape ShapeOf(const model::Value& value) {
  Shape shape;
  for (const model::Dim& dim : value.dims) shape.push_back(dim.local);
  return shape;
}

void Lowering::Store(model::ValueId value, const Tensor& tensor) const {
  const model::Value& target = program.value(value);
  write(value, text.Convert(text.Reshape(tensor, ShapeOf(target)), ElementOf(target.dtype)));
}

Tensor Lowering::Accumulated(size_t index) const {
  const model::ValueId value = op.outputs[index];
  const model::Value& target = program.value(value);
  const Overwrites overwrites = OverwritesOf(program, op);
  if (overwrites == Overwrites::kNever) return read(value);
  const Tensor zeros = text.Constant(ElementOf(target.dtype), ShapeOf(target), 0);
  if (overwrites == Overwrites::kEveryRun) return zeros;
  return text.Select(first_microbatch(), zeros, read(value));
}

void Lowering::Accumulate(size_t index, const Tensor& tensor) const {
  const model::ValueId value = op.outputs[index];
  const model::Value& target = program.value(value);
  const Tensor added = text.Convert(text.Reshape(tensor, ShapeOf(target)), ElementOf(target.dtype));
  if (OverwritesOf(program, op) == Overwrites::kEveryRun) return write(value, added);
  write(value, text.Add(Accumulated(index), added));
}

Status Lower(const Lowering& lowering) {
  for (const std::vector<model::ValueId>* list : {&lowering.op.inputs, &lowering.op.outputs}) {
    for (const model::ValueId id : *list) {
      if (model::IsFloat8(lowering.program.value(id).dtype)) {
        return Unimplemented("{} in float8 is not lowered to XLA", Name(lowering.op.kind));
      }
    }
  }
  switch (lowering.op.kind) {
#define TROUPE_OP(Kind, name, attributes, cpu, cuda) \
  case model::OpKind::k##Kind:                       \
    return Kind(lowering);
#include "model/program/op_kinds.def"
  }
  return Internal("operation kind {} is unknown", static_cast<int>(lowering.op.kind));
}

}  // namespace troupe::kernels::xla
