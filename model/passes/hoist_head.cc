#include <algorithm>
#include <map>

#include "model/passes/passes.h"

namespace troupe::model {

void HoistHead(Program& program) {
  for (auto& pieces : program.ops) {
    std::vector<Op>& forward = pieces[static_cast<int>(Piece::kForward)];
    std::vector<Op>& backward = pieces[static_cast<int>(Piece::kBackward)];
    std::map<int, std::vector<Op>> hoisted;
    for (Op& op : backward) {
      if (op.row_chunk < 0) continue;
      op.gradient_in_forward = true;
      hoisted[op.row_chunk].push_back(op);
    }
    if (hoisted.empty()) continue;
    std::erase_if(backward, [](const Op& op) { return op.gradient_in_forward; });
    std::vector<Op> merged;
    for (size_t i = 0; i < forward.size(); ++i) {
      const int row_chunk = forward[i].row_chunk;
      merged.push_back(std::move(forward[i]));
      const bool last =
          row_chunk >= 0 && (i + 1 == forward.size() || forward[i + 1].row_chunk != row_chunk);
      if (last) std::ranges::move(hoisted[row_chunk], std::back_inserter(merged));
    }
    forward = std::move(merged);
  }
}

}  // namespace troupe::model
