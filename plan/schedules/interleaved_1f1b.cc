#include "plan/schedules/interleaved_1f1b.h"

#include <algorithm>

#include "base/check.h"
#include "plan/schedules/interleaved_order.h"

namespace troupe {

Schedule Interleaved1F1B(const PipelineShape& shape) {
  TROUPE_CHECK(shape.microbatches >= 1 && InterleavedOrder::HoldsFor(shape));
  Schedule schedule{.name = "Interleaved1F1B",
                    .microbatches = shape.microbatches,
                    .chunks = LoopedChunks(shape),
                    .actions = {}};
  for (int rank = 0; rank < shape.stages; ++rank) {
    const InterleavedOrder order(shape, rank);
    const int warm_up =
        std::min(order.count(), (shape.chunks_per_stage - 1) * InterleavedOrder::RoundOf(shape) +
                                    2 * (shape.stages - 1 - rank));
    std::vector<Action>& actions = schedule.actions.emplace_back();
    for (int k = 0; k < order.count() + warm_up; ++k) {
      if (k < order.count()) actions.push_back(order.Forward(k));
      if (k >= warm_up) actions.push_back(order.Backward(k - warm_up, ActionKind::kBackward));
    }
  }
  return schedule;
}

}  // namespace troupe
