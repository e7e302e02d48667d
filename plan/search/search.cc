#include "plan/search/search.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "base/text/scaled.h"
#include "model/blocks/pattern.h"
#include "plan/device/tpu_model.h"
#include "plan/job/job_defaults.h"
#include "plan/job/key_schema.h"
#include "plan/job/violation.h"
#include "plan/layout/mesh.h"
#include "plan/search/layout_bound.h"
#include "plan/search/layout_estimate.h"
#include "plan/search/variants.h"
#include "plan/validate/stage_slices.h"
#include "plan/validate/validate.h"

namespace troupe {
namespace {

constexpr std::string_view kMode = "activation_recomputation.mode";

// A layout with the least recomputation that may still fit.
struct Candidate {
  v1::JobSpec spec;               // with this mode of recomputation
  std::vector<std::string> keys;  // without it
  size_t mode = 0;                // index into Search::modes_
  double seconds_at_least = 0;
  int64_t bytes_at_least = 0;
  std::optional<StatusOr<LayoutEstimate>> estimate;
};

// The number of layouts that are estimated at once.
constexpr unsigned kWave = 8;

// pipe, context, expert, tensor, data_shard, data_replicate.
using Degrees = std::array<int, 6>;

// Visits every factorisation of `devices` into the degrees from index `first` on.
void ForEachFactorization(int devices, size_t first, Degrees& degrees,
                          const std::function<void()>& visit) {
  if (first + 1 == degrees.size()) {
    degrees[first] = devices;
    return visit();
  }
  for (int factor = 1; factor <= devices; ++factor) {
    if (devices % factor != 0) continue;
    degrees[first] = factor;
    ForEachFactorization(devices / factor, first + 1, degrees, visit);
  }
}

std::string FirstViolation(const Status& status) {
  const std::vector<Violation> violations = ViolationsOf(status);
  if (violations.empty()) return std::string(Message(status));
  return violations[0].field + " " + violations[0].description;
}

bool IsFaster(const FoundLayout& a, const FoundLayout& b) {
  return a.time.seconds < b.time.seconds;
}

// Calls `work` with 0 to count - 1 on several threads. What it does with one number may not depend
// on another.
void OnAllCores(size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::min(kWave, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(run);
  run();
  for (std::thread& thread : threads) thread.join();
}

Status CheckSlices(const v1::JobSpec& spec) {
  TROUPE_ASSIGN_OR_RETURN(const DecodedJob job, DecodeJob(spec));
  return CheckStageSlices(job);
}

class Search {
 public:
  Search(const v1::JobSpec& spec, const v1::DeviceProfile& profile, const SearchOptions& options,
         bool has_experts, double peak)
      : spec_(spec),
        profile_(profile),
        options_(options),
        has_experts_(has_experts),
        bounds_(profile_, peak) {}

  SearchResult Run() {
    Enumerate();
    OnAllCores(candidates_.size(), [&](size_t i) { Bound(&candidates_[i]); });
    for (size_t i = 0; i < candidates_.size(); ++i) EnqueueOrReject(i);
    int plans = 0;
    while (!queue_.empty()) {
      const size_t next = queue_.begin()->second;
      Candidate& candidate = candidates_[next];
      queue_.erase(queue_.begin());
      if (candidate.seconds_at_least >= TooSlowSeconds()) {
        RejectSlow(candidate, candidate.seconds_at_least);
      } else if (plans == options_.plans_max) {
        RejectModes(candidate, candidate.mode,
                    fmt::format("was not evaluated: the limit of {} layouts was reached",
                                options_.plans_max));
      } else {
        ++plans;
        if (!candidate.estimate.has_value()) EstimateWave(&candidate);
        Consider(next);
      }
    }
    VaryBest();
    while (result_.best.size() > static_cast<size_t>(options_.best)) DropLast();
    return std::move(result_);
  }

 private:
  // The number of layouts that stay in the search until their other keys have been varied.
  size_t kept() const { return static_cast<size_t>(std::max({options_.best, options_.varied, 1})); }

  void Reject(const std::vector<std::string>& keys, std::string reason) {
    result_.rejected.push_back({keys, std::move(reason)});
  }

  // Rejects the layout with modes_[first] and with more recomputation.
  void RejectModes(const Candidate& candidate, size_t first, const std::string& reason) {
    for (size_t mode = first; mode < modes_.size(); ++mode)
      Reject(KeysWith(candidate, mode), reason);
  }

  // More recomputation takes no less time.
  void RejectSlow(const Candidate& candidate, double seconds_at_least) {
    RejectModes(
        candidate, candidate.mode,
        fmt::format("takes at least {:.4g} s per step; {} other layouts take at most {:.4g} s",
                    seconds_at_least, result_.best.size(), TooSlowSeconds()));
  }

  // Rejects the layout with its mode of recomputation, and goes on with more of it.
  void RejectMode(size_t index, std::string reason) {
    Candidate& candidate = candidates_[index];
    Reject(KeysWith(candidate, candidate.mode), std::move(reason));
    if (++candidate.mode == modes_.size()) return;
    candidate.estimate.reset();
    Bound(&candidate);
    EnqueueOrReject(index);
  }

  std::string ModeKey(size_t mode) const { return fmt::format("{}={}", kMode, modes_[mode]); }

  std::vector<std::string> KeysWith(const Candidate& candidate, size_t mode) const {
    std::vector<std::string> keys = candidate.keys;
    keys.push_back(ModeKey(mode));
    return keys;
  }

  void Enumerate() {
    Degrees degrees;
    ForEachFactorization(options_.devices, 0, degrees, [&] {
      if (degrees[2] > 1 && !has_experts_) return;
      v1::JobSpec spec = spec_;
      auto& parallelism = *spec.mutable_parallelism();
      parallelism.set_pipeline_parallel_degree(degrees[0]);
      parallelism.set_context_parallel_degree(degrees[1]);
      parallelism.set_expert_parallel_degree(degrees[2]);
      parallelism.set_tensor_parallel_degree(degrees[3]);
      parallelism.set_data_parallel_shard_degree(degrees[4]);
      parallelism.set_data_parallel_replicate_degree(degrees[5]);
      std::vector<std::string> keys;
      // Sequence parallelism sends the same bytes and needs less memory; with experts it is
      // required.
      if (degrees[3] > 1 && !parallelism.has_sequence_parallel()) {
        parallelism.set_sequence_parallel(true);
        keys.push_back("parallelism.sequence_parallel=true");
      }
      const v1::ParallelismSpec& job = spec_.parallelism();
      const auto state = [&](const char* key, int degree, int64_t of_job) {
        if (degree > 1 || of_job > 1) keys.push_back(fmt::format("parallelism.{}={}", key, degree));
      };
      state("pipeline_parallel_degree", degrees[0], job.pipeline_parallel_degree());
      state("context_parallel_degree", degrees[1], job.context_parallel_degree());
      state("expert_parallel_degree", degrees[2], job.expert_parallel_degree());
      state("tensor_parallel_degree", degrees[3], job.tensor_parallel_degree());
      state("data_parallel_shard_degree", degrees[4], job.data_parallel_shard_degree());
      state("data_parallel_replicate_degree", degrees[5], job.data_parallel_replicate_degree());
      if (degrees[4] * degrees[2] == 1 || parallelism.has_zero_stage()) {
        ApplyDefaults(&spec);
        return AddMicrobatches(spec, keys);
      }
      // Over expert alone nothing is sharded unless zero_stage is stated.
      if (degrees[4] == 1) {
        v1::JobSpec whole = spec;
        ApplyDefaults(&whole);
        AddMicrobatches(std::move(whole), keys);
      }
      // Stage 2 gathers as much as stage 1 and keeps less, but reduce-scatters each microbatch.
      for (const int zero_stage : {1, 2, 3}) {
        v1::JobSpec staged = spec;
        staged.mutable_parallelism()->set_zero_stage(zero_stage);
        ApplyDefaults(&staged);
        std::vector<std::string> all = keys;
        all.push_back(fmt::format("parallelism.zero_stage={}", zero_stage));
        AddMicrobatches(std::move(staged), all);
      }
    });
  }

  void AddMicrobatches(v1::JobSpec spec, const std::vector<std::string>& keys) {
    const StatusOr<Mesh> mesh = MakeMesh(spec.parallelism());
    if (!mesh.ok()) return Reject(keys, FirstViolation(mesh.status()));
    const int64_t data_ranks = mesh->data_ranks();
    const int64_t samples = spec.training().global_batch_size() / data_ranks;
    if (samples == 0 || spec.training().global_batch_size() % data_ranks != 0) {
      Violations violations;
      violations.AddNotMultiple("training.global_batch_size", spec.training().global_batch_size(),
                                fmt::format("the {} data ranks", data_ranks));
      return Reject(keys, FirstViolation(violations.ToStatus()));
    }
    for (int64_t size = 1; size <= samples; size *= 2) {
      if (samples % size != 0) break;
      spec.mutable_training()->set_micro_batch_size(size);
      std::vector<std::string> all = keys;
      all.push_back(fmt::format("training.micro_batch_size={}", size));
      // Relations do not depend on recomputation: one refusal is valid for all modes.
      spec.mutable_activation_recomputation()->set_mode(modes_[0]);
      if (const Status valid = Validate(spec); !valid.ok()) {
        all.push_back(ModeKey(0));
        Reject(all, FirstViolation(valid));
        continue;
      }
      candidates_.push_back({spec, std::move(all)});
    }
  }

  // Same as ValidateJobSpec, except that the globs over tensors, which need the whole model to be
  // built, are checked only once for all layouts.
  Status Validate(const v1::JobSpec& spec) {
    v1::JobSpec layout = spec;
    layout.mutable_optimizer()->clear_no_weight_decay();
    layout.mutable_model()->clear_trainable();
    TROUPE_RETURN_IF_ERROR(ValidateJobSpec(layout, JobPurpose::kPlan));
    if (FindTpuModel(profile_.device_model()) != nullptr)
      TROUPE_RETURN_IF_ERROR(CheckSlices(layout));
    if (!names_checked_) names_checked_ = ValidateJobSpec(spec, JobPurpose::kPlan);
    return *names_checked_;
  }

  // Sets the bounds of a candidate's mode.
  void Bound(Candidate* candidate) {
    candidate->spec.mutable_activation_recomputation()->set_mode(modes_[candidate->mode]);
    const StatusOr<DecodedJob> job = DecodeJob(candidate->spec);
    const LayoutBound bound = job.ok() ? bounds_.Of(*job) : LayoutBound{};
    candidate->bytes_at_least = bound.bytes;
    // More recomputation takes no less time; rounding may not put it before less of it.
    candidate->seconds_at_least = std::max(candidate->seconds_at_least, bound.seconds);
  }

  void EnqueueOrReject(size_t index) {
    const Candidate& candidate = candidates_[index];
    if (candidate.bytes_at_least <= profile_.memory_bytes()) {
      queue_.emplace(candidate.seconds_at_least, index);
      return;
    }
    RejectMode(
        index,
        fmt::format(
            "needs at least {} for weights, optimizer states and activations; a device has {}",
            Gigabytes(candidate.bytes_at_least), Gigabytes(profile_.memory_bytes())));
  }

  double TooSlowSeconds() const {
    return result_.best.size() == kept() ? result_.best.back().time.seconds
                                         : std::numeric_limits<double>::infinity();
  }

  // Estimates `first` and the next candidates that may be needed, on all cores. The result does not
  // depend on the number of cores.
  void EstimateWave(Candidate* first) {
    std::vector<Candidate*> wave = {first};
    const double too_slow_seconds = TooSlowSeconds();
    for (const auto& [seconds_at_least, index] : queue_) {
      if (seconds_at_least >= too_slow_seconds || wave.size() == kWave) break;
      Candidate& candidate = candidates_[index];
      if (!candidate.estimate.has_value()) wave.push_back(&candidate);
    }
    OnAllCores(wave.size(),
               [&](size_t i) { wave[i]->estimate = Estimate(wave[i]->spec, too_slow_seconds); });
  }

  StatusOr<LayoutEstimate> Estimate(const v1::JobSpec& spec, double too_slow_seconds) {
    TROUPE_ASSIGN_OR_RETURN(const DecodedJob job, DecodeJob(spec));
    return EstimateLayout(job, profile_, too_slow_seconds,
                          bounds_.SchedulesWithin(job, too_slow_seconds));
  }

  // Varies the other keys of the best layouts, and sorts these again.
  void VaryBest() {
    std::vector<FoundLayout>& best = result_.best;
    OnAllCores(std::min(best.size(), static_cast<size_t>(std::max(options_.varied, 0))),
               [&](size_t i) {
                 FoundLayout& found = best[i];
                 VariedLayout varied =
                     Vary(spec_, profile_, {found.spec, found.keys},
                          {.memory_bytes = found.memory_bytes, .time = found.time}, bounds_);
                 if (varied.layout.keys == found.keys) return;
                 found = {std::move(varied.layout.spec), std::move(varied.layout.keys),
                          *varied.estimate.time,         varied.estimate.memory_bytes,
                          varied.bound.seconds,          varied.bound.bytes};
               });
    std::stable_sort(best.begin(), best.end(), IsFaster);
  }

  // Rejects the last of the best layouts.
  void DropLast() {
    const FoundLayout last = std::move(result_.best.back());
    result_.best.pop_back();
    Reject(last.keys,
           fmt::format("takes {:.4g} s per step; {} other layouts take at most {:.4g} s",
                       last.time.seconds, result_.best.size(), result_.best.back().time.seconds));
  }

  // Keeps or rejects a candidate by its estimate.
  void Consider(size_t index) {
    const Candidate& candidate = candidates_[index];
    const StatusOr<LayoutEstimate>& estimate = *candidate.estimate;
    if (!estimate.ok()) return RejectMode(index, FirstViolation(estimate.status()));
    const int64_t bytes = estimate->memory_bytes;
    if (bytes > profile_.memory_bytes()) {
      return RejectMode(index, fmt::format("needs {} of memory; a device has {}", Gigabytes(bytes),
                                           Gigabytes(profile_.memory_bytes())));
    }
    if (!estimate->time.has_value()) return RejectSlow(candidate, estimate->seconds_at_least);
    RejectModes(candidate, candidate.mode + 1, "recomputes more activations than it needs to fit");
    FoundLayout found{
        candidate.spec, KeysWith(candidate, candidate.mode), *estimate->time,
        bytes,          candidate.seconds_at_least,          candidate.bytes_at_least};
    result_.best.insert(std::upper_bound(result_.best.begin(), result_.best.end(), found, IsFaster),
                        found);
    if (result_.best.size() > kept()) DropLast();
  }

  const v1::JobSpec& spec_;
  const v1::DeviceProfile& profile_;
  const SearchOptions& options_;
  const bool has_experts_;
  // The modes of recomputation in the order of their enum, where each recomputes more than the one
  // before it.
  const std::vector<std::string> modes_ = WordsOf(KeyField(kMode));
  LayoutBounds bounds_;
  std::vector<Candidate> candidates_;
  // The candidates that are not decided yet, by the bound of their seconds; values are indices.
  std::set<std::pair<double, size_t>> queue_;
  std::optional<Status> names_checked_;  // result of checking the globs
  SearchResult result_;
};

}  // namespace

StatusOr<SearchResult> SearchLayouts(const v1::JobSpec& spec, const v1::DeviceProfile& profile,
                                     const SearchOptions& options) {
  v1::JobSpec whole = spec;
  ApplyDefaults(&whole);
  TROUPE_ASSIGN_OR_RETURN(const double peak, PeakFor(whole.training(), profile));
  TROUPE_ASSIGN_OR_RETURN(const std::string blocks, model::ExpandPattern(whole.model().pattern()));
  return Search(spec, profile, options, model::HasExperts(blocks), peak).Run();
}

}  // namespace troupe
