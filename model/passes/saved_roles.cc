#include "model/passes/passes.h"
#include "model/program/storage.h"

namespace troupe::model {

void MarkSaved(Program& program) {
  for (size_t c = 0; c < program.chunks.size(); ++c) {
    std::vector<bool> made(program.values.size(), false);
    for (const Op& op : program.Ops(static_cast<int>(c), Piece::kForward)) {
      for (const ValueId output : op.outputs) made[StorageRoot(program, output)] = true;
    }
    for (const Op& op : program.Ops(static_cast<int>(c), Piece::kBackward)) {
      for (const ValueId input : op.inputs) {
        Value& root = program.values[StorageRoot(program, input)];
        if (made[root.id] && root.role == Role::kActivation) root.role = Role::kSaved;
      }
    }
    for (const ValueId id : {program.chunks[c].output, program.chunks[c].input_gradient}) {
      if (id != kNoValue) program.values[id].role = Role::kBoundary;
    }
  }
  for (Value& value : program.values) {
    if (value.view_of != kNoValue && value.role == Role::kActivation)
      value.role = program.value(StorageRoot(program, value.id)).role;
  }
}

}  // namespace troupe::model
