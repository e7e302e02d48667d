#include "plan/schedules/interleaved_order.h"

#include <algorithm>

namespace troupe {

int InterleavedOrder::RoundOf(const PipelineShape& shape) {
  return shape.microbatches / std::max(1, shape.microbatches / shape.stages);
}

bool InterleavedOrder::HoldsFor(const PipelineShape& shape) {
  return shape.chunks_per_stage == 1 ||
         shape.microbatches % std::max(1, shape.microbatches / shape.stages) == 0;
}

Status InterleavedOrder::Check(const PipelineShape& shape) {
  if (HoldsFor(shape)) return OkStatus();
  const int rounds = std::max(1, shape.microbatches / shape.stages);
  return InvalidArgument(
      "with {} chunks per stage needs microbatches that floor(microbatches / stages) divides: "
      "{} mod floor({} / {}) = {} mod {} = {}, not 0",
      shape.chunks_per_stage, shape.microbatches, shape.microbatches, shape.stages,
      shape.microbatches, rounds, shape.microbatches % rounds);
}

Action InterleavedOrder::Forward(int k) const { return At(k, ActionKind::kForward, false); }

Action InterleavedOrder::Backward(int k, ActionKind kind) const { return At(k, kind, true); }

Action InterleavedOrder::At(int k, ActionKind kind, bool reversed) const {
  const int round = RoundOf(shape_);
  const int walked = k / round % shape_.chunks_per_stage;
  const int index = reversed ? shape_.chunks_per_stage - 1 - walked : walked;
  return {.kind = kind,
          .chunk = index * shape_.stages + rank_,
          .microbatch = k / (round * shape_.chunks_per_stage) * round + k % round};
}

}  // namespace troupe
