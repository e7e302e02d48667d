// ZB-H1 (Qi et al. 2023, "Zero Bubble Pipeline Parallelism"): the memory of 1F1B, and a third of
// its bubble where F = I = W, because weight gradients are delayed until nothing else can run: rank
// r begins with them after r input gradients. Any number of chunks per rank, placed as in
// Interleaved 1F1B. Idle time per rank is (P-1)(F+B-2W)/V; every rank keeps V·P chunks live where M
// >= 2P.
#include <algorithm>

#include "base/check.h"
#include "plan/schedules/interleaved_order.h"
#include "plan/schedules/schedule_record.h"

namespace troupe {
namespace {

std::vector<std::vector<Action>> ZeroBubbleH1(const PipelineShape& shape) {
  TROUPE_CHECK(shape.microbatches >= 1 && InterleavedOrder::HoldsFor(shape));
  std::vector<std::vector<Action>> by_rank;
  for (int rank = 0; rank < shape.stages; ++rank) {
    const InterleavedOrder order(shape, rank);
    const int warm_up =
        std::min(order.count(), (shape.chunks_per_stage - 1) * InterleavedOrder::RoundOf(shape) +
                                    shape.stages - 1 - rank);
    std::vector<Action>& actions = by_rank.emplace_back();
    int weights = 0;  // weight gradients so far, in the order of the input gradients
    for (int k = 0; k < order.count() + warm_up; ++k) {
      if (k < order.count()) actions.push_back(order.Forward(k));
      if (k < warm_up) continue;
      actions.push_back(order.Backward(k - warm_up, ActionKind::kInputGradient));
      if (k - warm_up >= rank) {
        actions.push_back(order.Backward(weights++, ActionKind::kWeightGradient));
      }
    }
    while (weights < order.count()) {
      actions.push_back(order.Backward(weights++, ActionKind::kWeightGradient));
    }
  }
  return by_rank;
}

}  // namespace

constinit const ScheduleRecord kZeroBubbleH1Schedule = {.name = "ZBH1",
                                                        .default_chunks_per_stage = 1,
                                                        .alias = "InterleavedZeroBubble",
                                                        .alias_chunks_per_stage = 2,
                                                        .check = InterleavedOrder::Check,
                                                        .splits_backward = true,
                                                        .actions = ZeroBubbleH1};

}  // namespace troupe
