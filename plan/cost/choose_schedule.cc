#include "plan/cost/choose_schedule.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace troupe {
namespace {

struct ScheduleCandidate {
  ScheduleKind kind;
  PipelineShape shape;
  ScheduleCosts costs;
  double seconds;  // per step, in the unit of the costs
  double bubble_ratio;
  double peak;  // live microbatches of a whole stage on the rank with the most
};

std::string NameOf(ScheduleKind kind, int chunks_per_stage) {
  return chunks_per_stage == 1
             ? Name(kind)
             : fmt::format("{} with {} chunks per stage", Name(kind), chunks_per_stage);
}

std::string ToText(const ScheduleCandidate& candidate, double shortest) {
  return fmt::format(
      "{}: step time {:.3f} times the shortest, bubble {:.1f}%, at most {:.4g} microbatches in "
      "flight",
      NameOf(candidate.kind, candidate.shape.chunks_per_stage), candidate.seconds / shortest,
      100 * candidate.bubble_ratio, candidate.peak);
}

}  // namespace

std::vector<ScheduleOption> EverySchedule() {
  std::vector<ScheduleOption> options;
  for (const ScheduleKind kind : kScheduleKinds) options.push_back({kind});
  return options;
}

StatusOr<ScheduleChoice> ChooseSchedule(int stages, std::optional<int> chunks_per_stage,
                                        int microbatches, const CostsOfSchedule& costs_of_schedule,
                                        const std::vector<ScheduleOption>& options) {
  std::vector<ScheduleCandidate> candidates;
  std::vector<std::string> refused;
  double shortest = std::numeric_limits<double>::infinity();
  for (const auto& [kind, seconds_at_least] : options) {
    if (seconds_at_least > kAsShort * shortest) continue;
    const int chunks =
        chunks_per_stage.value_or(FindSchedule(Name(kind))->default_chunks_per_stage);
    const PipelineShape shape{stages, chunks, microbatches};
    const auto refuse = [&, kind = kind](const Status& status) {
      refused.push_back(fmt::format("{}: cannot run: {}", NameOf(kind, chunks), Message(status)));
    };
    if (const Status fits = CheckShape(kind, shape); !fits.ok()) {
      refuse(fits);
      continue;
    }
    const Schedule schedule = MakeSchedule(kind, shape);
    auto costs = costs_of_schedule(schedule);
    if (!costs.ok()) {
      refuse(costs.status());
      continue;
    }
    TROUPE_ASSIGN_OR_RETURN(
        const SimulationResult result,
        Simulate(schedule, costs->chunks, {.indivisible_pairs = costs->indivisible_pairs}));
    const int peak =
        *std::max_element(result.peak_live_activations.begin(), result.peak_live_activations.end());
    const double seconds = result.makespan + costs->once;
    candidates.push_back({kind, shape, *std::move(costs), seconds, result.bubble_ratio,
                          static_cast<double>(peak) / chunks});
    shortest = std::min(shortest, seconds);
  }
  if (candidates.empty()) {
    std::string text;
    for (const std::string& line : refused) text += (text.empty() ? "" : "; ") + line;
    return InvalidArgument("no schedule can run {} stages with {} microbatches: {}", stages,
                           microbatches, text);
  }
  const auto rank = [&](const ScheduleCandidate& candidate) {
    const bool as_short = candidate.seconds <= kAsShort * shortest;
    return std::tuple(!as_short, as_short ? candidate.peak : candidate.seconds, candidate.peak,
                      candidate.shape.chunks_per_stage, candidate.kind);
  };
  std::sort(
      candidates.begin(), candidates.end(),
      [&](const ScheduleCandidate& a, const ScheduleCandidate& b) { return rank(a) < rank(b); });
  ScheduleChoice choice{
      candidates.front().kind, candidates.front().shape, candidates.front().costs, {}};
  for (const ScheduleCandidate& candidate : candidates) {
    choice.reasons.push_back((choice.reasons.empty() ? "chosen: " : "") +
                             ToText(candidate, shortest));
  }
  choice.reasons.insert(choice.reasons.end(), refused.begin(), refused.end());
  return choice;
}

}  // namespace troupe
