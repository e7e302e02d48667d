#include "plan/search/variants.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "model/blocks/pattern.h"
#include "plan/job/job_defaults.h"
#include "plan/job/job_file.h"
#include "plan/job/key_schema.h"
#include "plan/job/reshard_mode.h"
#include "plan/layout/partition.h"
#include "plan/schedules/schedules.h"
#include "plan/search/block_costs.h"
#include "plan/validate/decoded_job.h"
#include "plan/validate/validate.h"

namespace troupe {
namespace {

using model::Axis;

constexpr std::string_view kSchedule = "parallelism.pipeline_parallel_schedule";
constexpr std::string_view kChunks = "parallelism.pipeline_parallel_chunks";
constexpr std::string_view kSplitPoints = "parallelism.pipeline_parallel_split_points";
constexpr std::string_view kParts = "parallelism.tensor_parallel_parts";
constexpr std::string_view kReshard = "parallelism.reshard_after_forward";
constexpr std::string_view kContextMethod = "parallelism.context_parallel_method";
constexpr std::string_view kDispatch = "parallelism.expert_dispatch";

// A variant whose step is not shorter by this share is not worth a key.
constexpr double kWorthAKey = 0.999;
// One key may make another one useful; more rounds hardly ever do.
constexpr int kRounds = 3;

using KeyValue = std::pair<std::string_view, std::string>;

// The keys without those of `changes`, then `changes` with their values; an empty value drops its
// key.
std::vector<std::string> Changed(const std::vector<std::string>& keys,
                                 const std::vector<KeyValue>& changes) {
  std::vector<std::string> changed;
  for (const std::string& key : keys) {
    const std::string_view name = std::string_view(key).substr(0, key.find('='));
    const auto is_changed = [&](const KeyValue& change) { return change.first == name; };
    if (std::ranges::none_of(changes, is_changed)) changed.push_back(key);
  }
  for (const auto& [name, value] : changes) {
    if (!value.empty()) changed.push_back(fmt::format("{}={}", name, value));
  }
  return changed;
}

// Makes the variants of one layout.
class Variants {
 public:
  // `job` is the decoded job of `layout`.
  Variants(const v1::JobSpec& stated, const Layout& layout, const DecodedJob& job,
           const v1::DeviceProfile& profile)
      : stated_(stated), layout_(layout), job_(job), profile_(profile) {}

  std::vector<Layout> Of(VariedKey key) {
    switch (key) {
      case VariedKey::kSchedule:
        Schedules();
        break;
      case VariedKey::kSplitPoints:
        SplitPoints();
        break;
      case VariedKey::kParts:
        Parts();
        break;
      case VariedKey::kReshard:
        Reshard();
        break;
      case VariedKey::kContextMethod:
        ContextMethods();
        break;
      case VariedKey::kDispatch:
        Dispatch();
        break;
    }
    return std::move(list_);
  }

 private:
  const v1::ParallelismSpec& parallelism() const { return layout_.spec.parallelism(); }

  void Add(const std::vector<KeyValue>& changes) {
    auto made = MakeLayout(stated_, Changed(layout_.keys, changes));
    if (made.ok() && made->spec.SerializeAsString() != layout_.spec.SerializeAsString())
      list_.push_back(*std::move(made));
  }

  // Adds a variant for each word of an enumerated key; the default needs no key.
  void Words(std::string_view key) {
    const google::protobuf::FieldDescriptor& field = KeyField(key);
    for (const std::string& word : WordsOf(field))
      Add({{key, word == KeyOptionsOf(field).default_() ? "" : word}});
  }

  void Schedules() {
    const v1::ParallelismSpec& stated = stated_.parallelism();
    const bool is_free = !stated.has_pipeline_parallel_schedule();
    const auto named = FindSchedule(parallelism().pipeline_parallel_schedule());
    if (job_.mesh.degree(Axis::kPipe) == 1 || !named) return;
    const int microbatches = job_.batch.microbatches();
    for (const ScheduleKind kind : kScheduleKinds) {
      if (!is_free && kind != named->kind) continue;
      for (const int chunks : {1, 2, 3, 4, 6, 8}) {
        if (stated.has_pipeline_parallel_chunks() && chunks != stated.pipeline_parallel_chunks()) {
          continue;
        }
        if (!CheckShape(kind, {job_.mesh.degree(Axis::kPipe), chunks, microbatches}).ok()) continue;
        const std::string name = is_free ? Name(kind) : parallelism().pipeline_parallel_schedule();
        const bool is_default = chunks == FindSchedule(name)->default_chunks_per_stage;
        std::vector<KeyValue> changes = {{kChunks, is_default ? "" : fmt::to_string(chunks)}};
        if (is_free) changes.emplace_back(kSchedule, name);
        if (stated.pipeline_parallel_split_points().empty()) changes.emplace_back(kSplitPoints, "");
        Add(changes);
      }
    }
  }

  // The cut by the seconds of the blocks on these devices in place of their FLOPs.
  void SplitPoints() {
    const int stages = job_.mesh.degree(Axis::kPipe);
    const auto peak = PeakFor(layout_.spec.training(), profile_);
    if (stages == 1 || !stated_.parallelism().pipeline_parallel_split_points().empty() ||
        !parallelism().has_pipeline_parallel_chunks() || !peak.ok()) {
      return;
    }
    const bool is_aligned = job_.mesh.ranks() / stages % profile_.devices_per_island() == 0;
    const auto costs = BlockCosts::Measure(job_, LeastSeconds(profile_, *peak, is_aligned));
    if (!costs.ok()) return;
    const auto seconds_of = [](const ChunkCosts& chunk) {
      return chunk.forward.seconds() + chunk.backward.seconds();
    };
    PartitionCosts by_seconds;
    const std::string& blocks = job_.model.blocks;
    for (const char letter : blocks)
      by_seconds.blocks.push_back(seconds_of(costs->Of({&letter, 1}, false, false)));
    const std::string_view first(blocks.data(), 1), last(&blocks.back(), 1);
    by_seconds.embedding = seconds_of(costs->Of(first, true, false)) - by_seconds.blocks.front();
    by_seconds.head = seconds_of(costs->Of(last, false, true)) - by_seconds.blocks.back();
    const auto cut = PartitionByCost(
        by_seconds, stages * static_cast<int>(parallelism().pipeline_parallel_chunks()));
    if (!cut.ok()) return;
    const std::vector<int> points(cut->first_block.begin() + 1, cut->first_block.end());
    Add({{kSplitPoints, fmt::format("[{}]", fmt::join(points, ", "))}});
  }

  void Parts() {
    if (stated_.parallelism().has_tensor_parallel_parts() || job_.mesh.degree(Axis::kTensor) == 1)
      return;
    for (const char* parts : {"", "2", "4", "8"}) Add({{kParts, parts}});
  }

  void Reshard() {
    const int shards = job_.mesh.degree(Axis::kDataShard);
    if (stated_.parallelism().has_reshard_after_forward() || shards == 1 ||
        parallelism().zero_stage() != 3) {
      return;
    }
    // The default, true, needs no key.
    for (const std::string& whole : {std::string(), kReshardFalse.ToText()})
      Add({{kReshard, whole}});
    for (int run = 2; run < shards; ++run) {
      if (shards % run == 0) Add({{kReshard, ReshardRun(run).ToText()}});
    }
  }

  void ContextMethods() {
    if (stated_.parallelism().has_context_parallel_method() ||
        job_.mesh.degree(Axis::kContext) == 1)
      return;
    Words(kContextMethod);
  }

  void Dispatch() {
    if (stated_.parallelism().has_expert_dispatch() || !model::HasExperts(job_.model.blocks) ||
        job_.mesh.degree(Axis::kExpert) * job_.mesh.degree(Axis::kTensor) == 1) {
      return;
    }
    Words(kDispatch);
  }

  const v1::JobSpec& stated_;
  const Layout& layout_;
  const DecodedJob& job_;
  const v1::DeviceProfile& profile_;
  std::vector<Layout> list_;
};

// Leaves out the globs over tensors, which no layout changes and which take long to check.
bool IsValid(const v1::JobSpec& spec) {
  v1::JobSpec checked = spec;
  checked.mutable_optimizer()->clear_no_weight_decay();
  checked.mutable_model()->clear_trainable();
  return ValidateJobSpec(checked, JobPurpose::kPlan).ok();
}

}  // namespace

StatusOr<Layout> MakeLayout(const v1::JobSpec& stated, std::vector<std::string> keys) {
  Layout layout = {stated, std::move(keys)};
  for (const std::string& key : layout.keys)
    TROUPE_RETURN_IF_ERROR(ApplyOverride(key, &layout.spec));
  ApplyDefaults(&layout.spec);
  return layout;
}

std::vector<Layout> VariantsOf(const v1::JobSpec& stated, const Layout& layout,
                               const v1::DeviceProfile& profile, VariedKey key) {
  const StatusOr<DecodedJob> job = DecodeJob(layout.spec);
  if (!job.ok()) return {};
  return Variants(stated, layout, *job, profile).Of(key);
}

VariedLayout Vary(const v1::JobSpec& stated, const v1::DeviceProfile& profile, Layout layout,
                  const LayoutEstimate& estimate, LayoutBounds& bounds) {
  VariedLayout varied = {std::move(layout), estimate, {}};
  // The limit only falls: a layout that was not worth its keys once never is.
  std::set<std::string> seen = {varied.layout.spec.SerializeAsString()};
  for (int round = 0; round < kRounds; ++round) {
    const double before = varied.estimate.time->seconds;
    for (const VariedKey key : kVariedKeys) {
      for (Layout& variant : VariantsOf(stated, varied.layout, profile, key)) {
        const double limit = kWorthAKey * varied.estimate.time->seconds;
        if (!seen.insert(variant.spec.SerializeAsString()).second) continue;
        if (!IsValid(variant.spec)) continue;
        const auto job = DecodeJob(variant.spec);
        if (!job.ok() || bounds.Of(*job).seconds >= limit) continue;
        const auto found =
            EstimateLayout(*job, profile, limit, bounds.SchedulesWithin(*job, limit));
        if (!found.ok() || !found->time || found->time->seconds >= limit) continue;
        varied.layout = std::move(variant);
        varied.estimate = *found;
      }
    }
    if (varied.estimate.time->seconds == before) break;
  }
  if (const auto job = DecodeJob(varied.layout.spec); job.ok()) varied.bound = bounds.Of(*job);
  return varied;
}

}  // namespace troupe
