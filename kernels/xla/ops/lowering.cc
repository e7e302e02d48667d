#include "kernels/xla/ops/lowering.h"

#include "kernels/xla/ops/ranks.h"

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
  if (overwrites == Overwrites::kEveryRun || only_microbatch) return zeros;
  return text.Select(first_microbatch(), zeros, read(value));
}

void Lowering::Accumulate(size_t index, const Tensor& tensor) const {
  const model::ValueId value = op.outputs[index];
  const model::Value& target = program.value(value);
  const Tensor added = text.Convert(text.Reshape(tensor, ShapeOf(target)), ElementOf(target.dtype));
  const Overwrites overwrites = OverwritesOf(program, op);
  if (overwrites == Overwrites::kEveryRun ||
      (overwrites == Overwrites::kFirstMicrobatch && only_microbatch))
    return write(value, added);
  write(value, text.Add(Accumulated(index), added));
}

Tensor Lowering::Number(Element element, const NumberOf& of) const {
  return ranks.Number(element, [&](int rank) { return of(ranks.lowerings()[rank]); });
}

Tensor Lowering::RowsFrom(const Tensor& x, const NumberOf& first, int64_t count) const {
  return count == x.shape[0] ? x : text.SliceAt(x, Number(Element::kI32, first), count);
}

Tensor Lowering::AmongZeros(const Tensor& x, const NumberOf& first, int64_t rows) const {
  if (rows == x.shape[0]) return x;
  Shape shape = x.shape;
  shape[0] = rows;
  return text.UpdateAt(text.Constant(x.element, shape, 0), x, Number(Element::kI32, first));
}

}  // namespace troupe::kernels::xla
