// DualPipeV (DeepSeek-AI; the half of DualPipe that needs no second copy of the parameters). Each
// rank has two chunks, placed as a V. In the steady state the forward of one chunk overlaps the
// backward of the other, so that the computation of one hides the communication of the other. At
// most 2P+1 chunks are live. Idle time per rank is (P-1)(F&B + B - 3W) where an overlapped pair is
// one action of cost F&B; where the output of the forward is sent before the backward begins, as on
// one processor, it is as small as ZBV's.
#include <deque>

#include "base/check.h"
#include "plan/schedules/schedule_record.h"

namespace troupe {
namespace {

// Appends actions of a rank's two chunks. Forwards and backwards of a chunk process the
// microbatches in order; delayed weight gradients run in the order in which they were delayed,
// regardless of their chunk.
class DualPipeActions {
 public:
  DualPipeActions(int stages, int rank, std::vector<Action>* actions)
      : chunks_{rank, 2 * stages - 1 - rank}, actions_(*actions) {}

  void F(int index) {
    actions_.push_back({ActionKind::kForward, chunks_[index], forwards_[index]++});
  }
  void B(int index) {
    actions_.push_back({ActionKind::kBackward, chunks_[index], backwards_[index]++});
  }
  void I(int index) {
    put_off_.push_back({ActionKind::kWeightGradient, chunks_[index], backwards_[index]});
    actions_.push_back({ActionKind::kInputGradient, chunks_[index], backwards_[index]++});
  }
  void W() {
    actions_.push_back(put_off_.front());
    put_off_.pop_front();
  }
  void OverlappedFB(int forward, int backward) {
    F(forward);
    actions_.back().overlaps_next = true;
    B(backward);
  }

 private:
  const int chunks_[2];
  std::vector<Action>& actions_;
  std::deque<Action> put_off_;
  int forwards_[2] = {};
  int backwards_[2] = {};
};

Status CheckMicrobatches(const PipelineShape& shape) {
  if (shape.microbatches >= 2 * shape.stages) return OkStatus();
  return InvalidArgument("needs microbatches >= 2 × stages: {} is below 2 × {} = {}",
                         shape.microbatches, shape.stages, 2 * shape.stages);
}

std::vector<std::vector<Action>> DualPipeV(const PipelineShape& shape) {
  const int stages = shape.stages, microbatches = shape.microbatches;
  TROUPE_CHECK(stages >= 1 && microbatches >= 2 * stages);
  std::vector<std::vector<Action>> by_rank;
  for (int rank = 0; rank < stages; ++rank) {
    DualPipeActions add(stages, rank, &by_rank.emplace_back());
    const int after = stages - 1 - rank;  // ranks after this one
    for (int i = 0; i < 2 * after; ++i) add.F(0);
    for (int i = 0; i < rank + 1; ++i) {
      add.F(0);
      add.F(1);
    }
    for (int i = 0; i < after; ++i) {
      add.I(1);
      add.W();
      add.F(1);
    }
    for (int i = 0; i < microbatches - 2 * stages + rank + 1; ++i) {
      if (i == 0 && after == 0) {
        // This rank consumes the output itself, so there is no communication to hide.
        add.F(0);
        add.B(1);
      } else {
        add.OverlappedFB(0, 1);
      }
      add.OverlappedFB(1, 0);
    }
    for (int i = 0; i < after; ++i) {
      add.B(1);
      add.OverlappedFB(1, 0);
    }
    // In the second half of the last backwards the weight gradients are delayed.
    for (int i = 0; i < 2 * (rank + 1); ++i) {
      const int index = i % 2 == 0 ? 1 : 0;
      if (i <= rank) {
        add.B(index);
      } else {
        add.I(index);
      }
    }
    for (int i = 0; i < after; ++i) {
      add.W();
      add.I(0);
    }
    for (int i = 0; i < rank + 1; ++i) add.W();
  }
  return by_rank;
}

}  // namespace

constinit const ScheduleRecord kDualPipeVSchedule = {.name = "DualPipeV",
                                                     .default_chunks_per_stage = 2,
                                                     .has_only_default_chunks = true,
                                                     .check = CheckMicrobatches,
                                                     .chunks = VShapedChunks,
                                                     .splits_backward = true,
                                                     .actions = DualPipeV};

}  // namespace troupe
