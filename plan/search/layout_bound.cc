#include "plan/search/layout_bound.h"

#include <algorithm>
#include <cmath>

#include "plan/cost/choose_schedule.h"
#include "plan/cost/cut_model.h"
#include "plan/job/key_schema.h"
#include "plan/schedules/schedules.h"
#include "plan/search/shard_costs.h"
#include "plan/search/step_bound.h"

namespace troupe {
namespace {

using model::Axis;

// One chunk with everything that its rank does for it.
struct BoundedChunk {
  ActionCosts seconds;          // seconds of a microbatch; all of B is in `input_gradient`
  double outside_schedule = 0;  // seconds of a step in addition to all microbatches
  double state_bytes = 0, saved_bytes = 0;
};

// The tables of the vocabulary in a chunk.
struct Tables {
  bool embedding = false, head = false;
  bool is_shared = false;  // the head's is the embedding's of the same rank
};

class ChunkBounds {
 public:
  ChunkBounds(const DecodedJob& job, const LeastSeconds& seconds)
      : shards_(job, seconds),
        table_(TableElements(job)),
        saves_(!job.spec.activation_recomputation().has_num_layers() ||
               job.choices.recomputation == model::Recomputation::Mode::kNone) {}

  BoundedChunk Of(ChunkCosts costs, const Tables& tables) const {
    ShardedElements of;
    of.embedding = tables.embedding ? table_ : 0;
    of.head = tables.head && !tables.is_shared ? table_ : 0;
    if (tables.head && tables.is_shared) costs.elements -= table_;
    of.blocks = std::max(0.0, costs.elements - of.embedding - of.head);
    of.tensors = std::max(0.0, costs.tensors - (tables.embedding ? 1 : 0) - (tables.head ? 2 : 0));
    const ShardCosts::Ends ends = shards_.Add(of, &costs);
    BoundedChunk bounded;
    bounded.seconds = {costs.forward.seconds(), costs.backward.seconds(), 0};
    // The first forward and the last backward, with the ends of a step, in place of those without.
    const auto beyond = [](Work work, const Work& end) {
      const double alone = work.seconds();
      return (work += end).seconds() - alone;
    };
    bounded.outside_schedule = beyond(costs.forward, ends.before) +
                               beyond(costs.backward, ends.after) +
                               shards_.UpdateSeconds(costs.elements);
    bounded.state_bytes = shards_.StateBytes(costs.elements);
    bounded.saved_bytes = saves_ ? costs.saved_bytes : 0;
    return bounded;
  }

 private:
  // Where parameters may be frozen, BlockCosts has none of them, and the tables count as frozen.
  static double TableElements(const DecodedJob& job) {
    if (!job.trained.globs.empty()) return 0;
    return static_cast<double>(job.model.hidden_size) *
           std::ceil(static_cast<double>(job.model.vocab_size) / job.mesh.degree(Axis::kTensor));
  }

  const ShardCosts shards_;
  const double table_;  // elements of a table on the tensor rank with the most
  const bool saves_;    // the saved bytes are known
};

// Bytes of the activations of one microbatch between two stages.
double BoundaryBytes(const DecodedJob& job) {
  const int64_t shares = job.splits_rows_over_tensor ? job.mesh.degree(Axis::kTensor) : 1;
  return static_cast<double>(job.rows_per_microbatch() / shares * job.model.hidden_size) *
         (job.computes_in_bfloat16() ? 2 : 4);
}

}  // namespace

const std::vector<LayoutBounds::Piece>& LayoutBounds::Cut(const DecodedJob& job, int chunks) {
  const auto& points = job.spec.parallelism().pipeline_parallel_split_points();
  const std::scoped_lock lock(mutex_);
  const auto [cut, is_new] = cuts_.try_emplace({chunks, {points.begin(), points.end()}});
  if (!is_new) return cut->second;
  const auto partition = CutModel(job, chunks);
  if (!partition.ok()) return cut->second;
  const std::string& blocks = job.model.blocks;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const bool is_last = chunk + 1 == chunks;
    const auto first = static_cast<size_t>(partition->first_block[static_cast<size_t>(chunk)]);
    const size_t end =
        is_last ? blocks.size()
                : static_cast<size_t>(partition->first_block[static_cast<size_t>(chunk) + 1]);
    cut->second.push_back({blocks.substr(first, end - first), chunk == 0, is_last,
                           job.trained.TrainsBefore(static_cast<int>(first))});
  }
  return cut->second;
}

const BlockCosts* LayoutBounds::CostsOf(const DecodedJob& job, const LeastSeconds& seconds) {
  const v1::ParallelismSpec& parallelism = job.spec.parallelism();
  // With a number of layers, which ones are recomputed depends on the chunk: none are, at least.
  const v1::ActivationRecomputationSpec& recomputation = job.spec.activation_recomputation();
  const v1::RecomputationMode mode = recomputation.has_num_layers()
                                         ? v1::RECOMPUTATION_MODE_NONE
                                         : DecodeWord<v1::RecomputationMode>(recomputation.mode());
  const std::string key =
      fmt::format("{} {} {} {} {} {} {} {} {} {} {}", parallelism.tensor_parallel_degree(),
                  parallelism.context_parallel_degree(), parallelism.expert_parallel_degree(),
                  parallelism.sequence_parallel(), parallelism.expert_tensor_parallel_degree(),
                  parallelism.tensor_parallel_parts(), parallelism.context_parallel_method(),
                  parallelism.expert_dispatch(), job.batch.micro_batch_size, static_cast<int>(mode),
                  seconds.is_aligned());
  const auto measured_at = [&]() -> Measured& {
    const std::scoped_lock lock(mutex_);
    return costs_[key];
  };
  Measured& measured = measured_at();
  std::call_once(measured.once, [&] {
    v1::JobSpec with_mode = job.spec;
    with_mode.mutable_activation_recomputation()->set_mode(EncodeWord(mode));
    const StatusOr<DecodedJob> decoded = DecodeJob(std::move(with_mode));
    if (!decoded.ok()) return;
    StatusOr<BlockCosts> costs = BlockCosts::Measure(*decoded, seconds);
    if (costs.ok()) measured.costs = *std::move(costs);
  });
  return measured.costs ? &*measured.costs : nullptr;
}

LayoutBound LayoutBounds::Of(const DecodedJob& job) {
  if (!job.chooses_schedule) {
    const auto named = FindSchedule(job.spec.parallelism().pipeline_parallel_schedule());
    return named ? Of(job, *named).value_or(LayoutBound{}) : LayoutBound{};
  }
  // The planner chooses one of the schedules that can run.
  std::optional<LayoutBound> least;
  for (const auto& [kind, bound] : OfEachSchedule(job)) {
    if (!least) least = bound;
    least->bytes = std::min(least->bytes, bound.bytes);
    least->seconds = std::min(least->seconds, bound.seconds);
  }
  return least.value_or(LayoutBound{});
}

std::vector<std::pair<ScheduleKind, LayoutBound>> LayoutBounds::OfEachSchedule(
    const DecodedJob& job) {
  std::vector<std::pair<ScheduleKind, LayoutBound>> bounds;
  for (const ScheduleKind kind : kScheduleKinds) {
    const std::optional<LayoutBound> bound = Of(job, *FindSchedule(Name(kind)));
    if (bound) bounds.emplace_back(kind, *bound);
  }
  return bounds;
}

std::vector<ScheduleOption> LayoutBounds::SchedulesWithin(const DecodedJob& job, double seconds) {
  std::vector<ScheduleOption> options = EverySchedule();
  if (!job.chooses_schedule) return options;
  for (const auto& [kind, bound] : OfEachSchedule(job))
    std::ranges::find(options, kind, &ScheduleOption::kind)->seconds_at_least = bound.seconds;
  std::erase_if(options, [seconds](const ScheduleOption& option) {
    return option.seconds_at_least > kAsShort * seconds;
  });
  std::ranges::stable_sort(options, {}, &ScheduleOption::seconds_at_least);
  return options;
}

std::optional<LayoutBound> LayoutBounds::Of(const DecodedJob& job, const NamedSchedule& named) {
  const Mesh& mesh = job.mesh;
  const int stages = mesh.degree(Axis::kPipe);
  const int microbatches = job.batch.microbatches();
  const PipelineShape shape{stages, job.chunks_per_stage.value_or(named.default_chunks_per_stage),
                            microbatches};
  const std::vector<Piece>& cut = Cut(job, shape.chunks());
  if (cut.empty() || !CheckShape(named.kind, shape).ok()) return std::nullopt;
  const int stage_ranks = mesh.ranks() / stages;
  const LeastSeconds seconds(profile_, peak_,
                             stages == 1 || stage_ranks % profile_.devices_per_island() == 0);
  const BlockCosts* const costs = CostsOf(job, seconds);
  if (costs == nullptr) return std::nullopt;
  const ChunkBounds bounds(job, seconds);
  const auto placed = ChunksByRank(named.kind, shape);
  const double transfer =
      stages == 1 ? 0 : seconds.Of({1, BoundaryBytes(job)}, stage_ranks * (stages - 1));
  StepBound step(microbatches, SplitsBackward(named.kind));
  double bytes = 0;
  for (int rank = 0; rank < stages; ++rank) {
    const std::vector<int>& chunks = placed[static_cast<size_t>(rank)];
    std::vector<ActionCosts> times;
    double outside_schedule = 0, rank_bytes = 0;
    for (const int chunk : chunks) {
      const Piece& piece = cut[static_cast<size_t>(chunk)];
      BoundedChunk bounded =
          bounds.Of(costs->Of(piece.letters, piece.has_embedding, piece.has_head),
                    {piece.has_embedding, piece.has_head,
                     job.model.tie_word_embeddings && chunks.front() == 0});
      // Between chunks of one rank nothing is transferred.
      const auto is_here = [&](int other) { return std::ranges::count(chunks, other) > 0; };
      if (!piece.has_head && !is_here(chunk + 1)) bounded.seconds.forward += transfer;
      if (!piece.has_embedding && !is_here(chunk - 1) && piece.sends_gradient)
        bounded.seconds.input_gradient += transfer;
      times.push_back(bounded.seconds);
      outside_schedule += bounded.outside_schedule;
      rank_bytes += bounded.state_bytes +
                    LeastLiveMicrobatches(named.kind, shape, rank) * bounded.saved_bytes;
    }
    step.Add(times, outside_schedule);
    bytes = std::max(bytes, rank_bytes);
  }
  return LayoutBound{static_cast<int64_t>(bytes), step.seconds()};
}

}  // namespace troupe
