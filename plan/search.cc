#include "plan/search.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "plan/estimate.h"
#include "plan/job_defaults.h"
#include "plan/layout_estimate.h"
#include "plan/mesh.h"
#include "plan/stage_inputs.h"
#include "plan/validate.h"
#include "plan/violation.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

struct Candidate {
  v1::JobSpec spec;
  std::vector<std::string> keys;
  double seconds_at_least = 0;
  int64_t bytes_at_least = 0;
};

// pipe, context, expert, tensor, data_shard, data_replicate.
using Degrees = std::array<int, 6>;

// Visits every way to write `devices` as a product of degrees from number `first` on.
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

std::string Gigabytes(int64_t bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9);
}

std::string FirstViolation(const Status& status) {
  const std::vector<Violation> violations = ViolationsOf(status);
  if (violations.empty()) return std::string(Message(status));
  return violations[0].field + " " + violations[0].description;
}

class Search {
 public:
  Search(const v1::JobSpec& spec, const v1::DeviceProfile& profile, const SearchOptions& options,
         model::ModelConfig model, double peak)
      : spec_(spec),
        profile_(profile),
        options_(options),
        model_(std::move(model)),
        flops_(peak * profile.product_efficiency()) {}

  SearchResult Run() {
    Enumerate();
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return a.seconds_at_least < b.seconds_at_least;
                     });
    int plans = 0;
    for (Candidate& candidate : candidates_) {
      if (static_cast<int>(result_.best.size()) == options_.best &&
          candidate.seconds_at_least >= result_.best.back().time.seconds) {
        Reject(candidate.keys,
               fmt::format("takes at least {:.4g} s a step, the last of the best {:.4g} s",
                           candidate.seconds_at_least, result_.best.back().time.seconds));
      } else if (plans == options_.plans_max) {
        Reject(candidate.keys, fmt::format("was not looked at: {} layouts with lower bounds were",
                                           options_.plans_max));
      } else {
        ++plans;
        Consider(candidate);
      }
    }
    return std::move(result_);
  }

 private:
  void Reject(const std::vector<std::string>& keys, std::string reason) {
    result_.rejected.push_back({keys, std::move(reason)});
  }

  void Enumerate() {
    const bool has_experts = model_.blocks.find('E') != std::string::npos;
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
      // These two together need it.
      if (degrees[2] > 1 && degrees[3] > 1 && !parallelism.sequence_parallel()) {
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
      ApplyDefaults(&spec);
      AddMicrobatches(std::move(spec), keys);
    });
  }

  void AddMicrobatches(v1::JobSpec spec, const std::vector<std::string>& keys) {
    const int64_t data_ranks = Mesh(spec.parallelism()).data_ranks();
    const int64_t samples = spec.training().global_batch_size() / data_ranks;
    if (samples == 0 || spec.training().global_batch_size() % data_ranks != 0) {
      Reject(keys, fmt::format("training.global_batch_size {} is no multiple of {} data ranks",
                               spec.training().global_batch_size(), data_ranks));
      return;
    }
    for (int64_t size = 1; size <= samples; size *= 2) {
      if (samples % size != 0) break;
      spec.mutable_training()->set_micro_batch_size(size);
      for (const char* mode : {"none", "selective", "full"}) {
        spec.mutable_activation_recomputation()->set_mode(mode);
        std::vector<std::string> all = keys;
        all.push_back(fmt::format("training.micro_batch_size={}", size));
        all.push_back(fmt::format("activation_recomputation.mode={}", mode));
        // Relations do not depend on recomputation: one refusal stands for all.
        if (const Status valid = ValidateJobSpec(spec, JobPurpose::kPlan); !valid.ok()) {
          Reject(keys, FirstViolation(valid));
          return;
        }
        AddCandidate(spec, std::move(all));
      }
    }
  }

  void AddCandidate(const v1::JobSpec& spec, std::vector<std::string> keys) {
    Candidate candidate{spec, std::move(keys)};
    const auto& parallelism = spec.parallelism();
    // Masters and moments at the least, spread over every axis that could hold a part of them.
    const int64_t spread =
        parallelism.pipeline_parallel_degree() * parallelism.tensor_parallel_degree() *
        parallelism.expert_parallel_degree() * parallelism.data_parallel_shard_degree();
    candidate.bytes_at_least = 12 * (ModelParameters(model_) / spread);
    if (candidate.bytes_at_least > profile_.memory_bytes()) {
      Reject(candidate.keys,
             fmt::format("needs at least {} of a device's {}: weights and moments",
                         Gigabytes(candidate.bytes_at_least), Gigabytes(profile_.memory_bytes())));
      return;
    }
    candidate.seconds_at_least = SecondsAtLeast(spec);
    candidates_.push_back(std::move(candidate));
  }

  // Products, the time that the pipeline needs to fill at least, and the two communications that no
  // layout escapes: that of tensor parallel products and that of gradients.
  double SecondsAtLeast(const v1::JobSpec& spec) const {
    const Mesh mesh(spec.parallelism());
    const auto degree = [&](model::Axis axis) { return static_cast<double>(mesh.degree(axis)); };
    const double pipe = degree(model::Axis::kPipe), tensor = degree(model::Axis::kTensor);
    const double tokens = static_cast<double>(spec.training().sequence_length());
    const double samples = static_cast<double>(spec.training().global_batch_size());
    const double microbatches = MakeBatchGeometry(spec.training(), mesh).microbatches();
    double compute = ModelFlops(model_, samples, tokens) / options_.devices / flops_;
    // Of a layer the last product alone need not be made again.
    if (spec.activation_recomputation().mode() == "full") compute *= 1.15;
    // The last stage waits for the forward passes of the stages before it, a third of the work
    // each.
    compute *= 1 + (pipe - 1) / (3 * microbatches);

    const double element = spec.training().compute_dtype() == "bfloat16" ? 2 : 4;
    const double activation = tokens / degree(model::Axis::kContext) * samples / mesh.data_ranks() *
                              static_cast<double>(model_.hidden_size) * element;
    const double blocks = static_cast<double>(model_.num_blocks()) / pipe;
    // A reduction of each block's output and one of its input's gradient.
    const double products = 2 * blocks * 2 * (tensor - 1) / tensor * activation /
                            Link(mesh.degree(model::Axis::kTensor)).bytes_per_second();
    const double data = mesh.data_ranks();
    const double gradients =
        4 * static_cast<double>(ModelParameters(model_)) / (pipe * tensor) * 2 * (data - 1) / data /
        Link(mesh.ranks() / mesh.degree(model::Axis::kPipe)).bytes_per_second();
    const bool has_experts = model_.blocks.find('E') != std::string::npos;
    return compute + products + (has_experts ? 0 : gradients);
  }

  // Of a group that spans so many consecutive ranks.
  const v1::LinkProfile& Link(int ranks) const {
    return ranks <= profile_.devices_per_island() ? profile_.island() : profile_.fabric();
  }

  void Consider(const Candidate& candidate) {
    const auto estimate = EstimateLayout(candidate.spec, profile_);
    if (!estimate.ok()) return Reject(candidate.keys, FirstViolation(estimate.status()));
    const int64_t bytes = estimate->memory_bytes;
    if (!estimate->time.has_value()) {
      return Reject(candidate.keys, fmt::format("needs {} of a device's {}", Gigabytes(bytes),
                                                Gigabytes(profile_.memory_bytes())));
    }
    const auto slower = [](const FoundLayout& a, const FoundLayout& b) {
      return a.time.seconds < b.time.seconds;
    };
    FoundLayout found{candidate.spec, candidate.keys, *estimate->time, bytes};
    result_.best.insert(std::upper_bound(result_.best.begin(), result_.best.end(), found, slower),
                        found);
    if (static_cast<int>(result_.best.size()) <= options_.best) return;
    const FoundLayout& last = result_.best.back();
    Reject(last.keys,
           fmt::format("takes {:.4g} s a step, the last of the best {:.4g} s", last.time.seconds,
                       result_.best[result_.best.size() - 2].time.seconds));
    result_.best.pop_back();
  }

  const v1::JobSpec& spec_;
  const v1::DeviceProfile& profile_;
  const SearchOptions& options_;
  const model::ModelConfig model_;
  const double flops_;
  std::vector<Candidate> candidates_;
  SearchResult result_;
};

std::string Joined(const std::vector<std::string>& keys) {
  std::string text;
  for (const std::string& key : keys) text += (text.empty() ? "" : " ") + key;
  return text;
}

// A reason without its numbers, so that like ones are counted together.
std::string WithoutNumbers(const std::string& reason) {
  std::string text;
  for (const char c : reason) {
    const bool digit = (c >= '0' && c <= '9') || c == '.';
    if (!digit) {
      text += c;
    } else if (text.empty() || text.back() != '#') {
      text += '#';
    }
  }
  return text;
}

}  // namespace

StatusOr<SearchResult> SearchLayouts(const v1::JobSpec& spec, const v1::DeviceProfile& profile,
                                     const SearchOptions& options) {
  v1::JobSpec whole = spec;
  ApplyDefaults(&whole);
  TROUPE_ASSIGN_OR_RETURN(const double peak, PeakFor(whole, profile));
  TROUPE_ASSIGN_OR_RETURN(model::ModelConfig model, MakeModelConfig(whole.model()));
  return Search(spec, profile, options, std::move(model), peak).Run();
}

std::string SearchToText(const SearchResult& result) {
  std::string text;
  if (result.best.empty()) text += "no layout fits\n";
  for (const FoundLayout& found : result.best) {
    text += fmt::format("{:.4g} s a step, MFU {:.1f}%, {} a rank: {}\n", found.time.seconds,
                        100 * found.time.mfu, Gigabytes(found.memory_bytes), Joined(found.keys));
  }
  struct Like {
    int count = 0;
    const RejectedLayout* first = nullptr;
  };
  std::map<std::string, Like> by_reason;
  for (const RejectedLayout& rejected : result.rejected) {
    Like& like = by_reason[WithoutNumbers(rejected.reason)];
    if (like.count++ == 0) like.first = &rejected;
  }
  std::vector<Like> order;
  for (const auto& [reason, like] : by_reason) order.push_back(like);
  std::stable_sort(order.begin(), order.end(),
                   [](const Like& a, const Like& b) { return a.count > b.count; });
  text += fmt::format("{} rejected:\n", result.rejected.size());
  for (const Like& like : order) {
    text +=
        fmt::format("  {} like {}: {}\n", like.count, Joined(like.first->keys), like.first->reason);
  }
  return text;
}

std::string SearchToJson(const SearchResult& result) {
  Json best = Json::array();
  for (const FoundLayout& found : result.best) {
    best.push_back({{"keys", found.keys},
                    {"step_seconds", found.time.seconds},
                    {"mfu", found.time.mfu},
                    {"bubble_ratio", found.time.bubble_ratio},
                    {"memory_bytes", found.memory_bytes}});
  }
  Json rejected = Json::array();
  for (const RejectedLayout& layout : result.rejected) {
    rejected.push_back({{"keys", layout.keys}, {"reason", layout.reason}});
  }
  const Json json = {{"best", std::move(best)}, {"rejected", std::move(rejected)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace troupe
