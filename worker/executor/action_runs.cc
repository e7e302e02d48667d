#include "worker/executor/action_runs.h"

#include <map>
#include <tuple>
#include <utility>

#include "model/pair_order.h"

namespace troupe {
namespace {

using model::Piece;
using model::PieceRun;

class Runs {
 public:
  Runs(const ActionList& list, const model::Program& program) : list_(list), program_(program) {}

  std::vector<ActionRun> All() {
    for (int index = 0; index < static_cast<int>(list_.actions.size());) {
      const int overlaps = program_.interleaves_pairs ? ActionAt(index).overlaps : 0;
      if (overlaps > 0) {
        for (const PieceRun& run : OrderOf(index, overlaps))
          Add(index + run.piece, run.begin, run.end);
      } else {
        Add(index, 0, SizeOf(index));
      }
      index += 1 + overlaps;
    }
    return std::move(runs_);
  }

 private:
  const RankAction& ActionAt(int index) const { return list_.actions[static_cast<size_t>(index)]; }
  int SizeOf(int index) const {
    const RankAction& action = ActionAt(index);
    return static_cast<int>(program_.Ops(action.chunk_index, action.piece).size());
  }

  // The order of the pair that begins at `index`. All pairs of the same two chunks share one order.
  const std::vector<PieceRun>& OrderOf(int index, int overlaps) {
    std::vector<Piece> backward;
    for (int i = 1; i <= overlaps; ++i) backward.push_back(ActionAt(index + i).piece);
    const int forward_chunk = ActionAt(index).chunk_index;
    const int backward_chunk = ActionAt(index + 1).chunk_index;
    const auto [order, is_new] = orders_.try_emplace({forward_chunk, backward_chunk, overlaps});
    if (is_new) {
      order->second = model::InterleavePair(program_, forward_chunk, backward_chunk, backward);
    }
    return order->second;
  }

  void Add(int index, int begin, int end) {
    runs_.push_back({index, begin, end, begin == 0, end == SizeOf(index)});
  }

  const ActionList& list_;
  const model::Program& program_;
  std::map<std::tuple<int, int, int>, std::vector<PieceRun>> orders_;
  std::vector<ActionRun> runs_;
};

}  // namespace

std::vector<ActionRun> RunsOf(const ActionList& list, const model::Program& program) {
  return Runs(list, program).All();
}

}  // namespace troupe
