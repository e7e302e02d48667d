#include "coordinator/page/step_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

namespace troupe {
namespace {

// A full record is thinned to at most 5 steps of each run, and to about 2 in general.
constexpr int64_t kRuns = 1024;

// The steps of a former group just before that of the job are read again until the present group
// has reported one: those that it has repeated may not be durable yet. They become durable within
// 200 ms.
constexpr int64_t kRepeatedSteps = 1024;

// The positions of the lowest and the highest of some values.
class Extremes {
 public:
  void Add(double value, size_t position) {
    if (!low_ || value < low_->first) low_ = {value, position};
    if (!high_ || value > high_->first) high_ = {value, position};
  }
  void AddTo(std::set<size_t>* kept) const {
    if (low_) kept->insert(low_->second);
    if (high_) kept->insert(high_->second);
  }

 private:
  std::optional<std::pair<double, size_t>> low_, high_;
};

// Adds the positions that stay of the steps from `begin` to `end`.
void KeepOfRun(const std::vector<v1::StepEvent>& steps, size_t begin, size_t end,
               std::set<size_t>* kept) {
  Extremes losses, validation_losses;
  std::optional<size_t> gap;
  for (size_t i = begin; i < end; ++i) {
    const v1::StepEvent& step = steps[i];
    if (std::isfinite(step.loss())) {
      losses.Add(step.loss(), i);
    } else if (!gap) {
      gap = i;
    }
    if (step.has_validation_loss() && std::isfinite(step.validation_loss()))
      validation_losses.Add(step.validation_loss(), i);
  }
  losses.AddTo(kept);
  validation_losses.AddTo(kept);
  if (gap) kept->insert(*gap);
}

}  // namespace

void StepRecord::Count(const v1::StepEvent& step) {
  if (step.group_epoch() == group_epoch_) {
    if (step.step() <= last_of_group_) return;
    if (first_of_group_ == 0) first_of_group_ = step.step();
    ++group_.steps;
    group_.tokens += step.tokens();
    return;
  }
  if (step.step() <= last_counted_) return;
  former_tokens_[step.step()] = step.tokens();
  if (former_tokens_.size() <= kMostRepeatedSteps) return;
  const auto first = former_tokens_.begin();
  last_counted_ = first->first;
  ++former_.steps;
  former_.tokens += first->second;
  former_tokens_.erase(first);
}

void StepRecord::Add(v1::StepEvent step) {
  Count(step);
  const bool is_of_group = step.group_epoch() == group_epoch_;
  int64_t& last = is_of_group ? last_of_group_ : last_of_former_;
  last = std::max(last, step.step());
  step.clear_norms();
  step.clear_dropped_fraction();
  const auto [kept, is_new] = steps_.try_emplace(step.step());
  if (is_new || step.group_epoch() >= kept->second.group_epoch()) kept->second = std::move(step);
  if (steps_.size() <= kMostSteps) return;
  std::vector<v1::StepEvent> all;
  for (auto& [number, row] : steps_) all.push_back(std::move(row));
  steps_.clear();
  for (v1::StepEvent& row : ThinnedSteps(std::move(all), kRuns))
    steps_.emplace_hint(steps_.end(), row.step(), std::move(row));
}

void StepRecord::Add(const v1::JobEvent& event) {
  events_.try_emplace({event.wall_time_ns(), event.event(), event.message()}, event);
  if (events_.size() > kMostEvents) events_.erase(events_.begin());
}

int64_t StepRecord::NextStep(int64_t job_step) const {
  if (last_of_group_ > 0) return last_of_group_ + 1;
  return std::max<int64_t>(std::min(last_of_former_, job_step - kRepeatedSteps), 0) + 1;
}

int64_t StepRecord::Through(int64_t job_step) const {
  return std::max(last_of_group_, std::min(last_of_former_, job_step));
}

bool StepRecord::IsBehind(int64_t job_step) const {
  const int64_t through = Through(job_step);
  return through < job_step && last_stored_ != through;
}

void StepRecord::EndRead(int64_t through, int64_t job_step) {
  if (through < job_step && Through(job_step) == through) last_stored_ = through;
}

std::string StepRecord::Shortfall(int64_t job_step) const {
  const int64_t through = Through(job_step);
  if (through >= job_step) return "";
  if (!IsBehind(job_step)) {
    return fmt::format("no steps are stored from step {} through {}, where the job is", through + 1,
                       job_step);
  }
  return fmt::format("the history is read through step {} of {} so far; the rest follows", through,
                     job_step);
}

std::vector<v1::StepEvent> StepRecord::Steps(int64_t job_step) const {
  std::vector<v1::StepEvent> steps;
  for (const auto& [number, step] : steps_) {
    if (number <= job_step || step.group_epoch() == group_epoch_) steps.push_back(step);
  }
  return steps;
}

std::optional<StepSums> StepRecord::Sums(int64_t job_step) const {
  const bool has_group = first_of_group_ > 0;
  if (last_counted_ > job_step || (has_group && last_counted_ >= first_of_group_))
    return std::nullopt;
  StepSums sums = {former_.steps + group_.steps, former_.tokens + group_.tokens};
  for (const auto& [number, tokens] : former_tokens_) {
    if (number > job_step) break;
    if (has_group && number >= first_of_group_ && number <= last_of_group_) continue;
    ++sums.steps;
    sums.tokens += tokens;
  }
  return sums;
}

std::vector<v1::JobEvent> StepRecord::Events() const {
  std::vector<v1::JobEvent> events;
  for (const auto& [key, event] : events_) events.push_back(event);
  return events;
}

std::vector<v1::StepEvent> ThinnedSteps(std::vector<v1::StepEvent> steps, int64_t runs) {
  if (steps.empty()) return steps;
  const int64_t first = steps.front().step();
  const int64_t width = (steps.back().step() - first) / runs + 1;  // step numbers of a run
  std::set<size_t> kept = {0, steps.size() - 1};
  for (size_t begin = 0; begin < steps.size();) {
    const int64_t run = (steps[begin].step() - first) / width;
    size_t end = begin;
    while (end < steps.size() && (steps[end].step() - first) / width == run) ++end;
    KeepOfRun(steps, begin, end, &kept);
    begin = end;
  }
  std::vector<v1::StepEvent> thinned;
  for (const size_t i : kept) thinned.push_back(std::move(steps[i]));
  return thinned;
}

}  // namespace troupe
