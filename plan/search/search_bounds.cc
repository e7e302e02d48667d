#include "plan/search/search_bounds.h"

#include <algorithm>
#include <optional>

#include "plan/cost/cut_model.h"
#include "plan/layout/mesh.h"
#include "plan/schedules/schedules.h"
#include "plan/validate/stage_inputs.h"

namespace troupe {
namespace {

bool SplitsBackward(ScheduleKind kind) {
  return kind == ScheduleKind::kZeroBubbleH1 || kind == ScheduleKind::kZeroBubbleV ||
         kind == ScheduleKind::kDualPipeV;
}

// A lower bound on the live microbatches of each chunk on a rank.
int LiveAtLeast(ScheduleKind kind, const PipelineShape& shape, int rank) {
  switch (kind) {
    case ScheduleKind::kGPipe:
      return shape.microbatches;
    case ScheduleKind::k1F1B:
      return std::min(shape.microbatches, shape.stages - rank);
    default:
      return 1;
  }
}

// Bounds for a schedule that is chosen later: every rank has its average share of the model and, at
// best, never waits.
LayoutBounds OfAnySchedule(const ChunkBound& bound, const ChunkContents& model, int stages,
                           int microbatches) {
  const ChunkBytes bytes = bound.Bytes(model);
  // The cut may end every chunk within a layer.
  ChunkContents cut = model;
  for (BlockCount& blocks : cut.blocks) blocks.continued = 0;
  const ChunkSeconds seconds = bound.Seconds(cut);
  return {(bytes.state + bytes.saved) / stages,
          (microbatches * (seconds.forward + seconds.backward)) / stages};
}

}  // namespace

const std::vector<ChunkContents>& SearchBounds::Cut(const v1::JobSpec& spec, int chunks) {
  const auto [cut, is_new] = cuts_.try_emplace(chunks);
  if (!is_new) return cut->second;
  const auto partition = CutModel(spec, model_, chunks);
  if (!partition.ok()) return cut->second;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const bool is_last = chunk + 1 == chunks;
    cut->second.push_back(ContentsOf(
        model_, partition->first_block[static_cast<size_t>(chunk)],
        is_last ? model_.num_blocks() : partition->first_block[static_cast<size_t>(chunk) + 1]));
  }
  return cut->second;
}

LayoutBounds SearchBounds::Of(const v1::JobSpec& spec) {
  const Mesh mesh(spec.parallelism());
  const ChunkBound bound(model_, profile_, flops_, spec);
  const int stages = mesh.degree(model::Axis::kPipe);
  const int microbatches = MakeBatchGeometry(spec.training(), mesh).microbatches();
  const auto named = FindSchedule(spec.parallelism().pipeline_parallel_schedule());
  if (!named) {
    return OfAnySchedule(bound, ContentsOf(model_, 0, model_.num_blocks()), stages, microbatches);
  }
  const PipelineShape shape{stages, static_cast<int>(spec.parallelism().pipeline_parallel_chunks()),
                            microbatches};
  const std::vector<ChunkContents>& cut = Cut(spec, shape.chunks());
  if (cut.empty() || !CheckShape(named->kind, shape).ok()) return {};
  const bool is_v =
      named->kind == ScheduleKind::kZeroBubbleV || named->kind == ScheduleKind::kDualPipeV;
  const auto placed = is_v ? VShapedChunks(stages) : LoopedChunks(shape);
  const bool splits = SplitsBackward(named->kind);
  const double transfer = stages > 1 ? bound.TransferSeconds() : 0;

  LayoutBounds least;
  double in_schedule = 0, once = 0;
  // A rank begins with the first of its chunks, which waits for the forward of all chunks before
  // it; where I and W are not split it also ends with that chunk, and the chunks before it wait for
  // that.
  double waits = 0;
  for (int rank = 0; rank < stages; ++rank) {
    double busy = 0, rank_once = 0;
    int64_t bytes = 0, temporary = 0;
    const std::vector<int>& chunks = placed[static_cast<size_t>(rank)];
    for (const int chunk : chunks) {
      ChunkContents contents = cut[static_cast<size_t>(chunk)];
      // The embedding's matrix is also the head's where one rank has both.
      if (model_.tie_word_embeddings && chunks.front() == 0) contents.owns_head = false;
      const ChunkSeconds seconds = bound.Seconds(contents);
      // In a V the last rank passes its output to itself.
      const bool within = is_v && rank + 1 == stages;
      const double sent = contents.has_head || (within && chunk == chunks.front()) ? 0 : transfer;
      const double sent_back =
          contents.has_embedding || (within && chunk == chunks.back()) ? 0 : transfer;
      busy += seconds.forward + sent + seconds.backward + sent_back;
      rank_once += seconds.once;
      const ChunkBytes memory = bound.Bytes(contents);
      bytes += memory.state + LiveAtLeast(named->kind, shape, rank) * memory.saved;
      temporary = std::max(temporary, memory.temporary);
    }
    in_schedule = std::max(in_schedule, waits + microbatches * busy);
    once = std::max(once, rank_once);
    least.bytes = std::max(least.bytes, bytes + temporary);
    const ChunkSeconds first = bound.Seconds(cut[static_cast<size_t>(chunks.front())]);
    waits += first.forward + transfer;
    if (!splits) waits += first.backward + (rank > 0 ? transfer : 0);
  }
  // The rounding error of a sum depends on the order of its terms.
  least.seconds = (1 - 1e-9) * (in_schedule + once);
  return least;
}

}  // namespace troupe
