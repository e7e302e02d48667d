// ZBV (Qi et al. 2023): two chunks per rank, placed as a V, and at most 2P live chunks (the memory
// of 1F1B). Where F = I = W and M >= 2P a rank idles for P-1 forwards of a chunk, and only because
// all ranks end the step together.
//
// It supports every number of microbatches: with fewer than 2P-1 it is the schedule for 2P-1
// without the actions of the microbatches that do not exist.
#include <algorithm>

#include "base/check.h"
#include "plan/schedules/schedule_record.h"

namespace troupe {
namespace {

// Appends actions of a rank's two chunks; each kind of action of a chunk processes the microbatches
// in order. The order is made for at least 2 * stages - 1 microbatches. Actions of microbatches
// beyond the schedule's own are counted but not stored, so that memory grows with the schedule.
class RankActions {
 public:
  RankActions(int stages, int rank, int microbatches, std::vector<Action>* actions)
      : chunks_{rank, 2 * stages - 1 - rank}, microbatches_(microbatches), actions_(*actions) {}

  void F(int index) { Add(ActionKind::kForward, index, &forwards_[index]); }
  void I(int index) { Add(ActionKind::kInputGradient, index, &inputs_[index]); }
  void W(int index) { Add(ActionKind::kWeightGradient, index, &weights_[index]); }

  int forwards(int index) const { return forwards_[index]; }
  int inputs(int index) const { return inputs_[index]; }
  int weights(int index) const { return weights_[index]; }

 private:
  void Add(ActionKind kind, int index, int* microbatch) {
    if (*microbatch < microbatches_) actions_.push_back({kind, chunks_[index], *microbatch});
    ++*microbatch;
  }

  const int chunks_[2];
  const int microbatches_;
  std::vector<Action>& actions_;
  int forwards_[2] = {};
  int inputs_[2] = {};
  int weights_[2] = {};
};

std::vector<std::vector<Action>> ZeroBubbleV(const PipelineShape& shape) {
  const int stages = shape.stages, microbatches = shape.microbatches;
  TROUPE_CHECK(stages >= 1 && microbatches >= 1);
  std::vector<std::vector<Action>> by_rank;
  const int generated = std::max(microbatches, 2 * stages - 1);
  for (int rank = 0; rank < stages; ++rank) {
    std::vector<Action>& actions = by_rank.emplace_back();
    RankActions add(stages, rank, microbatches, &actions);
    for (int i = 0; i < 2 * (stages - rank) - 1; ++i) add.F(0);
    for (int i = 0; i < rank; ++i) {
      add.F(1);
      add.F(0);
    }
    for (int i = 0; i < stages - rank; ++i) {
      add.F(1);
      add.I(1);
      add.W(1);
    }
    while (add.forwards(0) < generated || add.forwards(1) < add.forwards(0)) {
      if (add.forwards(0) < generated) add.F(0);
      add.I(0);
      add.W(0);
      add.F(1);
      add.I(1);
      add.W(1);
    }
    for (int i = 0; i < rank; ++i) {
      add.I(0);
      add.I(1);
    }
    for (int i = 0; i < stages - rank; ++i) {
      add.I(0);
      add.W(0);
    }
    while (add.weights(1) < add.inputs(1)) add.W(1);
    while (add.weights(0) < add.inputs(0)) add.W(0);
  }
  return by_rank;
}

}  // namespace

constinit const ScheduleRecord kZeroBubbleVSchedule = {.name = "ZBV",
                                                       .default_chunks_per_stage = 2,
                                                       .alias = "ZBVZeroBubble",
                                                       .alias_chunks_per_stage = 2,
                                                       .has_only_default_chunks = true,
                                                       .chunks = VShapedChunks,
                                                       .splits_backward = true,
                                                       .actions = ZeroBubbleV};

}  // namespace troupe
