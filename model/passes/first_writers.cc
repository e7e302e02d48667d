#include "model/passes/passes.h"
#include "model/program/op_rules.h"

namespace troupe::model {

void MarkFirstWriters(Program& program) {
  std::vector<bool> written(program.values.size(), false);
  for (auto pieces = program.ops.rbegin(); pieces != program.ops.rend(); ++pieces) {
    for (const Piece piece : {Piece::kForward, Piece::kBackward}) {
      for (Op& op : (*pieces)[static_cast<int>(piece)]) {
        const int accumulated = RulesOf(op.kind).accumulated_output;
        if (accumulated < 0) continue;
        const ValueId gradient = op.outputs[accumulated];
        // The loss totals are not a gradient: the executor zeroes them.
        if (program.value(gradient).role == Role::kInput) continue;
        op.first_writer = !written[gradient];
        written[gradient] = true;
      }
    }
  }
}

}  // namespace troupe::model
