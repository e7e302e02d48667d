#include "plan/search/search.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "model/pattern.h"
#include "plan/job/job_defaults.h"
#include "plan/job/violation.h"
#include "plan/layout/mesh.h"
#include "plan/search/layout_bound.h"
#include "plan/search/layout_estimate.h"
#include "plan/search/variants.h"
#include "plan/text/scaled.h"
#include "plan/validate/stage_inputs.h"
#include "plan/validate/validate.h"

namespace troupe {
namespace {

struct Candidate {
  v1::JobSpec spec;
  std::vector<std::string> keys;
  size_t layout = 0;  // the same for candidates that differ in recomputation only
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

class Search {
 public:
  Search(const v1::JobSpec& spec, const v1::DeviceProfile& profile, const SearchOptions& options,
         model::ModelConfig model, double peak)
      : spec_(spec),
        profile_(profile),
        options_(options),
        model_(std::move(model)),
        bounds_(model_, profile_, peak) {}

  SearchResult Run() {
    Enumerate();
    // Among candidates of one layout the one with the least recomputation comes first: the bound is
    // equal or grows with it.
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return a.seconds_at_least < b.seconds_at_least;
                     });
    int plans = 0;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& candidate = candidates_[i];
      if (candidate.seconds_at_least >= TooSlowSeconds()) {
        RejectSlow(candidate.keys, candidate.seconds_at_least);
      } else if (fits_without_more_.count(candidate.layout) > 0) {
        Reject(candidate.keys, "recomputes activations, but fits without recomputation");
      } else if (plans == options_.plans_max) {
        Reject(candidate.keys, fmt::format("was not evaluated: the limit of {} layouts was reached",
                                           options_.plans_max));
      } else {
        ++plans;
        if (!candidate.estimate.has_value()) EstimateWave(i);
        Consider(candidate);
      }
    }
    VaryBest();
    while (result_.best.size() > static_cast<size_t>(options_.best)) DropLast(options_.best);
    return std::move(result_);
  }

 private:
  // The number of layouts that stay in the search until their other keys have been varied.
  size_t kept() const { return static_cast<size_t>(std::max({options_.best, options_.varied, 1})); }

  void Reject(const std::vector<std::string>& keys, std::string reason) {
    result_.rejected.push_back({keys, std::move(reason)});
  }

  void RejectSlow(const std::vector<std::string>& keys, double seconds_at_least) {
    Reject(keys,
           fmt::format("takes at least {:.4g} s per step; the slowest proposal takes {:.4g} s",
                       seconds_at_least, TooSlowSeconds()));
  }

  void Enumerate() {
    const bool has_experts = model::HasExperts(model_.blocks);
    Degrees degrees;
    ForEachFactorization(options_.devices, 0, degrees, [&] {
      if (degrees[2] > 1 && !has_experts) return;
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
      const auto state = [&](const char* key, int degree) {
        if (degree > 1) keys.push_back(fmt::format("parallelism.{}={}", key, degree));
      };
      state("pipeline_parallel_degree", degrees[0]);
      state("context_parallel_degree", degrees[1]);
      state("expert_parallel_degree", degrees[2]);
      state("tensor_parallel_degree", degrees[3]);
      state("data_parallel_shard_degree", degrees[4]);
      state("data_parallel_replicate_degree", degrees[5]);
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
    const int64_t data_ranks = Mesh(spec.parallelism()).data_ranks();
    const int64_t samples = spec.training().global_batch_size() / data_ranks;
    if (samples == 0 || spec.training().global_batch_size() % data_ranks != 0) {
      Reject(keys,
             fmt::format("training.global_batch_size {} is not a multiple of the {} data ranks",
                         spec.training().global_batch_size(), data_ranks));
      return;
    }
    for (int64_t size = 1; size <= samples; size *= 2) {
      if (samples % size != 0) break;
      spec.mutable_training()->set_micro_batch_size(size);
      ++layouts_;
      for (const char* mode : {"none", "selective", "full"}) {
        spec.mutable_activation_recomputation()->set_mode(mode);
        std::vector<std::string> all = keys;
        all.push_back(fmt::format("training.micro_batch_size={}", size));
        all.push_back(fmt::format("activation_recomputation.mode={}", mode));
        // Relations do not depend on recomputation: one refusal is valid for all modes.
        if (const Status valid = Validate(spec); !valid.ok()) {
          Reject(keys, FirstViolation(valid));
          return;
        }
        AddCandidate(spec, std::move(all));
      }
    }
  }

  // Same as ValidateJobSpec, except that the globs of no_weight_decay, which need the whole model
  // to be built, are checked only once for all layouts.
  Status Validate(const v1::JobSpec& spec) {
    v1::JobSpec layout = spec;
    layout.mutable_optimizer()->clear_no_weight_decay();
    TROUPE_RETURN_IF_ERROR(ValidateJobSpec(layout, JobPurpose::kPlan));
    if (!names_checked_) names_checked_ = ValidateJobSpec(spec, JobPurpose::kPlan);
    return *names_checked_;
  }

  void AddCandidate(const v1::JobSpec& spec, std::vector<std::string> keys) {
    Candidate candidate{spec, std::move(keys), layouts_};
    const LayoutBound bounds = bounds_.Of(spec);
    candidate.bytes_at_least = bounds.bytes;
    candidate.seconds_at_least = bounds.seconds;
    // More recomputation takes no less time; rounding may not put it before less of it.
    if (layouts_ == bounded_layout_) {
      candidate.seconds_at_least = std::max(bounded_seconds_, candidate.seconds_at_least);
    }
    bounded_layout_ = layouts_;
    bounded_seconds_ = candidate.seconds_at_least;
    if (candidate.bytes_at_least > profile_.memory_bytes()) {
      Reject(candidate.keys,
             fmt::format("needs at least {} for weights, moments and activations; a device has {}",
                         Gigabytes(candidate.bytes_at_least), Gigabytes(profile_.memory_bytes())));
      return;
    }
    candidates_.push_back(std::move(candidate));
  }

  double TooSlowSeconds() const {
    return result_.best.size() == kept() ? result_.best.back().time.seconds
                                         : std::numeric_limits<double>::infinity();
  }

  // Estimates the candidate and the following ones that may be needed next, on all cores. The
  // result does not depend on the number of cores.
  void EstimateWave(size_t first) {
    std::vector<Candidate*> wave;
    // One candidate each: more recomputation matters only if this does not fit.
    std::set<size_t> layouts;
    const double too_slow_seconds = TooSlowSeconds();
    for (size_t i = first; i < candidates_.size() && wave.size() < kWave; ++i) {
      Candidate& candidate = candidates_[i];
      if (candidate.seconds_at_least >= too_slow_seconds) break;
      if (candidate.estimate.has_value() || fits_without_more_.contains(candidate.layout)) continue;
      if (layouts.insert(candidate.layout).second) wave.push_back(&candidate);
    }
    OnAllCores(wave.size(), [&](size_t i) {
      wave[i]->estimate = EstimateLayout(wave[i]->spec, profile_, too_slow_seconds);
    });
  }

  // Varies the other keys of the best layouts, and sorts these again.
  void VaryBest() {
    std::vector<FoundLayout>& best = result_.best;
    OnAllCores(
        std::min(best.size(), static_cast<size_t>(std::max(options_.varied, 0))), [&](size_t i) {
          FoundLayout& found = best[i];
          VariedLayout varied = Vary(spec_, profile_, {found.spec, found.keys},
                                     {.memory_bytes = found.memory_bytes, .time = found.time});
          if (varied.layout.keys == found.keys) return;
          found = {std::move(varied.layout.spec), std::move(varied.layout.keys),
                   *varied.estimate.time,         varied.estimate.memory_bytes,
                   varied.bound.seconds,          varied.bound.bytes};
        });
    std::stable_sort(best.begin(), best.end(), IsFaster);
  }

  // Rejects the last of the best layouts, of which `best` remain in the end.
  void DropLast(int best) {
    const FoundLayout& last = result_.best.back();
    const size_t last_kept = std::min(result_.best.size() - 1, static_cast<size_t>(best)) - 1;
    Reject(last.keys, fmt::format("takes {:.4g} s per step; the slowest proposal takes {:.4g} s",
                                  last.time.seconds, result_.best[last_kept].time.seconds));
    result_.best.pop_back();
  }

  void Consider(const Candidate& candidate) {
    const StatusOr<LayoutEstimate>& estimate = *candidate.estimate;
    if (!estimate.ok()) return Reject(candidate.keys, FirstViolation(estimate.status()));
    const int64_t bytes = estimate->memory_bytes;
    if (bytes > profile_.memory_bytes()) {
      return Reject(candidate.keys,
                    fmt::format("needs {} of memory; a device has {}", Gigabytes(bytes),
                                Gigabytes(profile_.memory_bytes())));
    }
    if (!estimate->time.has_value()) return RejectSlow(candidate.keys, estimate->seconds_at_least);
    fits_without_more_.insert(candidate.layout);
    FoundLayout found{
        candidate.spec,          candidate.keys, *estimate->time, bytes, candidate.seconds_at_least,
        candidate.bytes_at_least};
    result_.best.insert(std::upper_bound(result_.best.begin(), result_.best.end(), found, IsFaster),
                        found);
    if (result_.best.size() > kept()) DropLast(static_cast<int>(kept()));
  }

  const v1::JobSpec& spec_;
  const v1::DeviceProfile& profile_;
  const SearchOptions& options_;
  const model::ModelConfig model_;
  LayoutBounds bounds_;
  std::vector<Candidate> candidates_;
  size_t layouts_ = 0;
  // The layout of the candidate that was added last, and its bound.
  size_t bounded_layout_ = 0;
  double bounded_seconds_ = 0;
  std::optional<Status> names_checked_;  // result of checking optimizer.no_weight_decay
  std::set<size_t> fits_without_more_;   // layouts
  SearchResult result_;
};

}  // namespace

StatusOr<SearchResult> SearchLayouts(const v1::JobSpec& spec, const v1::DeviceProfile& profile,
                                     const SearchOptions& options) {
  v1::JobSpec whole = spec;
  ApplyDefaults(&whole);
  TROUPE_ASSIGN_OR_RETURN(const double peak, PeakFor(whole, profile));
  TROUPE_ASSIGN_OR_RETURN(model::ModelConfig model, MakeModelConfig(whole.model()));
  return Search(spec, profile, options, std::move(model), peak).Run();
}

}  // namespace troupe
