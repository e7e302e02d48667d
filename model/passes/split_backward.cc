#include "model/passes/passes.h"

namespace troupe::model {

void SplitBackward(Program& program) {
  for (auto& pieces : program.ops) {
    for (const Op& op : pieces[static_cast<int>(Piece::kBackward)]) {
      const Piece piece =
          op.part == Part::kWeightGradient ? Piece::kWeightGradient : Piece::kInputGradient;
      pieces[static_cast<int>(piece)].push_back(op);
    }
  }
}

}  // namespace troupe::model
