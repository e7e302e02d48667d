#include "kernels/backend/plain_program.h"

#include <utility>

#include "kernels/backend/op_sequence.h"

namespace troupe::kernels {

model::Program PlainProgram() {
  model::Program program;
  program.chunks.resize(1);
  program.ops.resize(1);
  program.ops[0].resize(model::kNumPieces);
  return program;
}

model::ValueId AddPlainValue(model::Program& program, model::DType dtype,
                             const std::vector<int64_t>& extents, std::string name) {
  model::Value value;
  value.id = static_cast<model::ValueId>(program.values.size());
  value.name = std::move(name);
  value.dtype = dtype;
  for (const int64_t extent : extents) value.dims.push_back({"dim", extent, extent});
  program.values.push_back(value);
  return value.id;
}

void AddPlainOp(model::Program& program, model::Op op) {
  program.ops[0][static_cast<size_t>(model::Piece::kForward)].push_back(std::move(op));
}

model::MemoryPlan PlainPlan(const model::Program& program) {
  model::MemoryPlan plan;
  plan.buffers.assign(program.chunks.size(), 1);
  plan.saved_bytes.assign(program.chunks.size(), 0);
  plan.locations.resize(program.values.size());
  for (const model::Value& value : program.values) {
    if (value.view_of != model::kNoValue) {
      int64_t skipped = 0;
      const model::ValueId root = RootOf(program, value.id, &skipped);
      plan.locations[value.id].offset =
          plan.locations[root].offset + skipped * model::SizeOf(value.dtype);
      continue;
    }
    plan.locations[value.id].offset = plan.persistent_bytes;
    plan.persistent_bytes += (value.bytes() + 63) / 64 * 64;
  }
  return plan;
}

}  // namespace troupe::kernels
