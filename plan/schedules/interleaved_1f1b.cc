// Interleaved 1F1B (Megatron-LM): V chunks per rank, chunk c on rank c mod P, which makes the
// bubble V times smaller than that of 1F1B. Idle time per rank is (P-1)(F+B)/V, where F and B are
// those of all the rank's chunks. Rank 0 keeps at most (V-1)P + 2(P-1) + 1 chunks live where M >=
// 2P. With one chunk it differs from 1F1B: its warm-up is longer.
#include <algorithm>

#include "base/check.h"
#include "plan/schedules/interleaved_order.h"
#include "plan/schedules/schedule_record.h"

namespace troupe {
namespace {

std::vector<std::vector<Action>> Interleaved1F1B(const PipelineShape& shape) {
  TROUPE_CHECK(shape.microbatches >= 1 && InterleavedOrder::HoldsFor(shape));
  std::vector<std::vector<Action>> by_rank;
  for (int rank = 0; rank < shape.stages; ++rank) {
    const InterleavedOrder order(shape, rank);
    const int warm_up =
        std::min(order.count(), (shape.chunks_per_stage - 1) * InterleavedOrder::RoundOf(shape) +
                                    2 * (shape.stages - 1 - rank));
    std::vector<Action>& actions = by_rank.emplace_back();
    for (int k = 0; k < order.count() + warm_up; ++k) {
      if (k < order.count()) actions.push_back(order.Forward(k));
      if (k >= warm_up) actions.push_back(order.Backward(k - warm_up, ActionKind::kBackward));
    }
  }
  return by_rank;
}

}  // namespace

constinit const ScheduleRecord kInterleaved1F1BSchedule = {.name = "Interleaved1F1B",
                                                           .default_chunks_per_stage = 2,
                                                           .check = InterleavedOrder::Check,
                                                           .actions = Interleaved1F1B};

}  // namespace troupe
