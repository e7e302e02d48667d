#include "plan/validate/validate_pipeline.h"

#include <algorithm>

#include "model/blocks/pattern.h"
#include "plan/schedules/schedules.h"

namespace troupe {
namespace {

constexpr int64_t kMaxBatch = int64_t{1} << 24;
// Limit on the forwards in a schedule, over all microbatches and chunks. The plan holds every
// action of the schedule, so this bounds the plan's size (some 4 MB) and its planning time.
constexpr int64_t kMaxForwards = int64_t{1} << 17;

// The microbatches of a step on each pipeline; 0 where one of the numbers that determine it is
// refused.
int64_t Microbatches(const v1::JobSpec& spec) {
  const auto& parallelism = spec.parallelism();
  const auto& training = spec.training();
  int64_t unit = 1;
  for (const int64_t factor :
       {parallelism.data_parallel_replicate_degree(), parallelism.data_parallel_shard_degree(),
        parallelism.expert_parallel_degree(), training.micro_batch_size()}) {
    if (factor < 1 || factor > kMaxBatch || unit > kMaxBatch) return 0;
    unit *= factor;
  }
  const int64_t batch = training.global_batch_size();
  return batch >= 1 && batch <= kMaxBatch && batch % unit == 0 ? batch / unit : 0;
}

void ValidateSplitPoints(const v1::ParallelismSpec& parallelism, int64_t pieces, int64_t blocks,
                         Violations* violations) {
  const char* field = "parallelism.pipeline_parallel_split_points";
  const auto& points = parallelism.pipeline_parallel_split_points();
  if (points.empty()) return;
  if (points.size() != pieces - 1) {
    violations->Add(field, "has {} entries, but {} stages × chunks need {}", points.size(), pieces,
                    pieces - 1);
  }
  for (int i = 0; i < points.size(); ++i) {
    const int64_t before = i == 0 ? 0 : points[i - 1];
    if (points[i] > before && points[i] < blocks) continue;
    violations->AddOutOfRange(
        fmt::format("{}[{}]", field, i), points[i],
        fmt::format("({}, {}): above the point before it and below the number of blocks", before,
                    blocks));
    return;
  }
}

}  // namespace

void ValidatePipeline(const v1::JobSpec& spec, Violations* violations) {
  const char* field = "parallelism.pipeline_parallel_schedule";
  const auto& parallelism = spec.parallelism();
  const std::string& name = parallelism.pipeline_parallel_schedule();
  const int64_t stages = parallelism.pipeline_parallel_degree();
  const auto named = FindSchedule(name);
  const bool automatic = name == kAutoSchedule;
  if (!named && !automatic) {
    violations->AddUnknownWord(field, name, KnownSchedules());
  }
  if (violations->Has("parallelism.pipeline_parallel_degree")) return;
  // If the user states no number, auto uses as many chunks as the split points make.
  const int64_t points = parallelism.pipeline_parallel_split_points_size();
  int64_t chunks = std::max<int64_t>(1, (points + 1) / stages);
  if (parallelism.has_pipeline_parallel_chunks()) {
    if (violations->Has("parallelism.pipeline_parallel_chunks")) return;
    chunks = parallelism.pipeline_parallel_chunks();
  }
  const auto blocks = model::ExpandPattern(spec.model().pattern());
  if (!blocks.ok()) return;
  const int64_t count = static_cast<int64_t>(blocks->size());
  if (stages * chunks > count) {
    violations->Add(
        "parallelism.pipeline_parallel_degree",
        "is {}, but {} stages × {} chunks exceed the {} blocks of model.pattern = \"{}\"", stages,
        stages, chunks, count, spec.model().pattern());
    return;
  }
  ValidateSplitPoints(parallelism, stages * chunks, count, violations);
  const int64_t microbatches = Microbatches(spec);
  if (microbatches < 1) return;
  if (!parallelism.has_pipeline_parallel_chunks() && named) {
    chunks = std::max<int64_t>(chunks, named->default_chunks_per_stage);
  }
  if (microbatches > kMaxForwards / (stages * chunks)) {
    violations->Add("training.global_batch_size",
                    "is {}, which makes {} microbatches a step on each pipeline: {} microbatches × "
                    "{} stages × {} chunks = {} is more than the {} forwards that a schedule may "
                    "have; raise training.micro_batch_size or a data-parallel degree",
                    spec.training().global_batch_size(), microbatches, microbatches, stages, chunks,
                    microbatches * stages * chunks, kMaxForwards);
    return;
  }
  const PipelineShape shape{static_cast<int>(stages), static_cast<int>(chunks),
                            static_cast<int>(microbatches)};
  if (named) {
    if (const Status fits = CheckShape(named->kind, shape); !fits.ok()) {
      violations->Add(field, "is {}, which cannot run: {}", name, Message(fits));
    }
  } else if (automatic) {
    if (const Status fits = CheckAnyShape(shape); !fits.ok()) {
      violations->Add(field, "is auto, but no schedule can run: {}", Message(fits));
    }
  }
}

}  // namespace troupe
