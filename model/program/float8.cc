#include "model/program/float8.h"

namespace troupe::model {

const char* Name(Float8Recipe recipe) {
  switch (recipe) {
    case Float8Recipe::kNone:
      return "none";
    case Float8Recipe::kDelayed:
      return "delayed";
    case Float8Recipe::kCurrent:
      return "current";
    case Float8Recipe::kBlockwise:
      return "blockwise";
  }
  return "?";
}

const char* Name(QuantizeSource source) {
  switch (source) {
    case QuantizeSource::kValue:
      return "value";
    case QuantizeSource::kSwiGlu:
      return "swiglu";
    case QuantizeSource::kSwiGluGrad:
      return "swiglu_grad";
  }
  return "?";
}

ScaleShape ScaleShapeOf(const MeshView& mesh, const std::vector<Dim>& dims,
                        const Placement& placement, int block_rows) {
  ScaleShape shape;
  int64_t holders[2] = {1, 1};  // ranks with different slices, by sharded dim
  for (int a = 1; a < kNumAxes; ++a) {
    const AxisPlacement& axis = placement.axes[a];
    shape.placement.axes[a] = axis;
    if (axis.kind != PlacementKind::kShard) continue;
    holders[axis.dim] *= mesh.degrees.of[a];
    if (block_rows == 0) shape.placement.axes[a] = Shard(0);
  }
  if (block_rows == 0) {
    shape.dims = {{"scales", holders[0] * holders[1], 1}};
    return shape;
  }
  const int64_t rows = (dims[0].local + block_rows - 1) / block_rows;
  const int64_t columns = (dims[1].local + kFloat8Block - 1) / kFloat8Block;
  shape.dims = {{dims[0].name, block_rows == 1 ? dims[0].global : rows * holders[0], rows},
                {"blocks", columns * holders[1], columns}};
  return shape;
}

}  // namespace troupe::model
