#include "plan/search.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include <nlohmann/json.hpp>

#include "plan/estimate.h"
#include "plan/job_defaults.h"
#include "plan/layout_estimate.h"
#include "plan/mesh.h"
#include "plan/schedules/schedules.h"
#include "plan/stage_inputs.h"
#include "plan/validate.h"
#include "plan/violation.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

struct Candidate {
  v1::JobSpec spec;
  std::vector<std::string> keys;
  size_t layout = 0;  // candidates that differ in recomputation alone have one number
  double seconds_at_least = 0;
  int64_t bytes_at_least = 0;
  std::optional<StatusOr<LayoutEstimate>> estimate;
};

// Layouts that are estimated at once.
constexpr unsigned kWave = 8;

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
    // Of one layout that which computes least again comes first: bounds are equal or grow with it.
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Candidate& a, const Candidate& b) {
                       return a.seconds_at_least < b.seconds_at_least;
                     });
    int plans = 0;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& candidate = candidates_[i];
      if (static_cast<int>(result_.best.size()) == options_.best &&
          candidate.seconds_at_least >= result_.best.back().time.seconds) {
        Reject(candidate.keys,
               fmt::format("takes at least {:.4g} s a step, the last of the best {:.4g} s",
                           candidate.seconds_at_least, result_.best.back().time.seconds));
      } else if (fits_without_more_.count(candidate.layout) > 0) {
        Reject(candidate.keys, "computes again what fits without");
      } else if (plans == options_.plans_max) {
        Reject(candidate.keys, fmt::format("was not looked at: {} layouts with lower bounds were",
                                           options_.plans_max));
      } else {
        ++plans;
        if (!candidate.estimate.has_value()) EstimateWave(i);
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
      // Sends as much as without and keeps less; beside experts it is needed.
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
      if (degrees[4] == 1 || parallelism.has_zero_stage()) {
        ApplyDefaults(&spec);
        return AddMicrobatches(spec, keys);
      }
      // 2 gathers what 1 does and keeps less, but scatters each microbatch.
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
      Reject(keys, fmt::format("training.global_batch_size {} is no multiple of {} data ranks",
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
    Candidate candidate{spec, std::move(keys), layouts_};
    candidate.bytes_at_least = BytesAtLeast(spec);
    if (candidate.bytes_at_least > profile_.memory_bytes()) {
      Reject(candidate.keys,
             fmt::format("needs at least {} of a device's {}: weights, moments and activations",
                         Gigabytes(candidate.bytes_at_least), Gigabytes(profile_.memory_bytes())));
      return;
    }
    candidate.seconds_at_least = SecondsAtLeast(spec);
    candidates_.push_back(std::move(candidate));
  }

  // Masters and moments, spread over every axis that could hold a part of them; and where nothing is computed again, of
  // each microbatch that a stage keeps alive its queries, keys, values, what attention makes of them, and the
  // two halves of SwiGLU.
  int64_t BytesAtLeast(const v1::JobSpec& spec) const {
    const Mesh mesh(spec.parallelism());
    const int64_t pipe = mesh.degree(model::Axis::kPipe), tensor = mesh.degree(model::Axis::kTensor);
    const int64_t spread = pipe * tensor * mesh.degree(model::Axis::kExpert) *
                           mesh.degree(model::Axis::kDataShard);
    const int64_t bytes = 12 * (ModelParameters(model_) / spread);
    if (spec.activation_recomputation().mode() != "none") return bytes;
    const int64_t rows = spec.training().micro_batch_size() * spec.training().sequence_length() /
                         mesh.degree(model::Axis::kContext);
    const int64_t element = spec.training().compute_dtype() == "bfloat16" ? 2 : 4;
    const int64_t heads = 2 * (model_.num_attention_heads + model_.num_key_value_heads);
    const auto all = [&](char kind) {
      return std::count(model_.blocks.begin(), model_.blocks.end(), kind);
    };
    const int64_t channels =
        (all('A') * heads * model_.head_dim + all('D') * 2 * model_.intermediate_size) / tensor;
    // The first stage keeps as many alive as there are stages, each one after it one fewer; one of the first three has
    // a mean share of the blocks. Of other schedules one microbatch is sure.
    const int64_t alive =
        spec.parallelism().pipeline_parallel_schedule() == "1F1B"
            ? std::min<int64_t>(pipe, MakeBatchGeometry(spec.training(), mesh).microbatches())
            : 1;
    return bytes + std::max<int64_t>(1, alive - 2) * rows * element * channels / pipe;
  }

  // What no program of this layout avoids: products, the bytes that norms and SwiGLU move, launches, the filling of the
  // pipeline, the sums of forward, the update; and where they are more than all of that, the transfers, which
  // computation may hide otherwise.
  double SecondsAtLeast(const v1::JobSpec& spec) const {
    const Mesh mesh(spec.parallelism());
    const auto degree = [&](model::Axis axis) { return static_cast<double>(mesh.degree(axis)); };
    const double pipe = degree(model::Axis::kPipe), tensor = degree(model::Axis::kTensor),
                 context = degree(model::Axis::kContext), expert = degree(model::Axis::kExpert);
    const double tokens = static_cast<double>(spec.training().sequence_length());
    const double samples = static_cast<double>(spec.training().global_batch_size());
    const double microbatches = MakeBatchGeometry(spec.training(), mesh).microbatches();
    const double element = spec.training().compute_dtype() == "bfloat16" ? 2 : 4;
    const double rows = tokens / context * samples / mesh.data_ranks();  // of a rank in a step
    const double hidden = static_cast<double>(model_.hidden_size);
    const auto blocks = [&](char kind) {
      return static_cast<double>(std::count(model_.blocks.begin(), model_.blocks.end(), kind)) / pipe;
    };

    // The stage of the head has that at least.
    double compute = std::max(ModelFlops(model_, samples, tokens) / pipe,
                              3 * HeadForwardFlops(model_, samples, tokens)) *
                     pipe / options_.devices / flops_;
    // Of a layer the last product alone need not be made again.
    if (spec.activation_recomputation().mode() == "full") compute *= 1.15;
    // A norm of each block reads and writes its rows in forward and in backward; so does SwiGLU.
    const double norm_rows = spec.parallelism().sequence_parallel() ? rows / tensor : rows;
    const double moved = 4 * (blocks('A') + blocks('D')) * norm_rows * hidden +
                         6 * blocks('D') * rows * static_cast<double>(model_.intermediate_size) / tensor;
    compute += element * moved / profile_.memory_bytes_per_second();
    const bool rings = context > 1 && spec.parallelism().context_parallel_method() != "all_to_all";
    const double parts = rings ? context : 1;
    compute += microbatches * profile_.launch_seconds() *
               (8 * (blocks('A') + blocks('D')) + 2 * parts * blocks('A'));
    compute *= 1 + (pipe - 1) / microbatches * FillingShare(spec);

    const double payload = rows * hidden * element;
    const v1::LinkProfile& tensor_link = Link(mesh.degree(model::Axis::kTensor));
    // A reduction of each block's output and one of its input's gradient.
    const double sums = (blocks('A') + blocks('D')) * 2 * (tensor - 1) *
                        (microbatches * tensor_link.latency_seconds() +
                         payload / tensor / tensor_link.bytes_per_second());
    // Keys and values go round in forward and in backward, their gradients in backward.
    const double keys_values = 2 * static_cast<double>(model_.num_key_value_heads * model_.head_dim) /
                               tensor * rows * element;
    const v1::LinkProfile& context_link = Link(static_cast<int>(context * expert * tensor));
    const double round = blocks('A') * (context - 1) *
                         (microbatches * context_link.latency_seconds() +
                          keys_values / context_link.bytes_per_second());
    const double parameters = static_cast<double>(ModelParameters(model_)) / (pipe * tensor);
    const bool has_experts = model_.blocks.find('E') != std::string::npos;
    const double tensors = 3 * (blocks('A') + blocks('D'));
    const Gathers gathers =
        has_experts ? Gathers{} : GathersOf(spec, mesh, parameters, tensors, element);
    // AdamW reads a gradient, reads and writes two moments and the parameter.
    const double shards = degree(model::Axis::kDataShard);
    const double update =
        has_experts ? 0 : 28 * parameters / shards / profile_.memory_bytes_per_second();
    // Those at the ends of a step are under way while one microbatch is computed, but no longer.
    const double ends = profile_.transfers_need_cores()
                            ? gathers.once
                            : std::max(0.0, gathers.once - compute / microbatches);
    return std::max(compute + sums + update + ends,
                    2 * sums + (rings ? 3 * round : 0) + gathers.once + gathers.under_way);
  }

  // Of a microbatch's forward and backward, what a stage waits for each other one: the filling of the pipeline and,
  // where gradients of weights do not fill it, its emptying.
  static double FillingShare(const v1::JobSpec& spec) {
    const auto schedule = FindSchedule(spec.parallelism().pipeline_parallel_schedule());
    if (!schedule || spec.parallelism().pipeline_parallel_chunks() > 1) return 0;
    switch (schedule->kind) {
      case ScheduleKind::kGPipe:
      case ScheduleKind::k1F1B:
        return 1;
      case ScheduleKind::kZeroBubbleH1:
        return 1.0 / 3;
      default:
        return 0;
    }
  }

  // Gathers of parameters and sums of gradients, seconds of their links.
  struct Gathers {
    double once = 0;       // before and after the microbatches
    double under_way = 0;  // while they are computed
  };

  // Of the rank's `parameters` in so many `tensors`: sharded inside, replicated outside.
  Gathers GathersOf(const v1::JobSpec& spec, const Mesh& mesh, double parameters, double tensors,
                    double element) const {
    const double microbatches = MakeBatchGeometry(spec.training(), mesh).microbatches();
    const int inside = mesh.degree(model::Axis::kContext) * mesh.degree(model::Axis::kExpert) *
                       mesh.degree(model::Axis::kTensor);
    const int shards = mesh.degree(model::Axis::kDataShard);
    const double replicas = static_cast<double>(mesh.ranks()) /
                            (mesh.degree(model::Axis::kPipe) * mesh.degree(model::Axis::kTensor) * shards);
    const double reduced = spec.training().mixed_precision().reduce() == "bfloat16" ? 2 : 4;
    Gathers gathers;
    gathers.once = reduced * parameters / shards * 2 * (replicas - 1) / replicas /
                   Link(mesh.ranks() / mesh.degree(model::Axis::kPipe)).bytes_per_second();
    if (shards == 1) return gathers;
    const v1::LinkProfile& link = Link(shards * inside);
    // Of one element of each parameter, in a ring of the shards.
    const auto seconds = [&](double bytes, double times) {
      return times * (shards - 1) *
             (tensors * link.latency_seconds() + bytes * parameters / shards / link.bytes_per_second());
    };
    const int64_t stage = spec.parallelism().zero_stage();
    const bool gathers_often = stage == 3 && spec.parallelism().reshard_after_forward() != "false";
    (gathers_often ? gathers.under_way : gathers.once) +=
        seconds(element, gathers_often ? 2 * microbatches : 1);
    if (stage == 1) {
      gathers.once += seconds(reduced, 1);
    } else {  // by buckets
      gathers.under_way +=
          microbatches * reduced * parameters * (shards - 1) / shards / link.bytes_per_second();
    }
    return gathers;
  }

  // Of a group that spans so many consecutive ranks.
  const v1::LinkProfile& Link(int ranks) const {
    return ranks <= profile_.devices_per_island() ? profile_.island() : profile_.fabric();
  }

  // Estimates the candidate and those behind it that may be wanted next, on all cores: what is found does not depend on
  // how many there are.
  void EstimateWave(size_t first) {
    const size_t end = std::min(candidates_.size(), first + kWave);
    std::atomic<size_t> next = first;
    const auto work = [&] {
      for (size_t i = next++; i < end; i = next++) {
        Candidate& candidate = candidates_[i];
        if (fits_without_more_.count(candidate.layout) > 0 || candidate.estimate.has_value()) continue;
        candidate.estimate = EstimateLayout(candidate.spec, profile_);
      }
    };
    std::vector<std::thread> threads;
    for (unsigned i = 1; i < std::min(kWave, std::thread::hardware_concurrency()); ++i)
      threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
  }

  void Consider(const Candidate& candidate) {
    const StatusOr<LayoutEstimate>& estimate = *candidate.estimate;
    if (!estimate.ok()) return Reject(candidate.keys, FirstViolation(estimate.status()));
    const int64_t bytes = estimate->memory_bytes;
    if (!estimate->time.has_value()) {
      return Reject(candidate.keys, fmt::format("needs {} of a device's {}", Gigabytes(bytes),
                                                Gigabytes(profile_.memory_bytes())));
    }
    fits_without_more_.insert(candidate.layout);
    const auto slower = [](const FoundLayout& a, const FoundLayout& b) {
      return a.time.seconds < b.time.seconds;
    };
    FoundLayout found{candidate.spec, candidate.keys, *estimate->time, bytes, candidate.seconds_at_least, candidate.bytes_at_least};
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
  size_t layouts_ = 0;
  std::set<size_t> fits_without_more_;  // layouts
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
