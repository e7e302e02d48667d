#include "worker/executor/step_trace.h"

#include <algorithm>

namespace troupe {
namespace {

MonotonicTime Now() { return std::chrono::steady_clock::now(); }

}  // namespace

StepTrace::StepTrace(size_t intervals, size_t operations_max)
    : operations_max_(operations_max), ring_(intervals) {}

void StepTrace::BeginStep(int64_t step) {
  std::lock_guard lock(mutex_);
  step_begin_ = Now();
  is_open_ = false;
  step_.store(step, std::memory_order_relaxed);
  if (first_step_ == 0) first_step_ = step;
}

void StepTrace::Enter(Phase phase, int chunk, int microbatch) {
  std::lock_guard lock(mutex_);
  const MonotonicTime now = Now();
  LeaveLocked(now);
  open_ = {.begin = now,
           .step = step_.load(std::memory_order_relaxed),
           .phase = phase,
           .chunk = chunk,
           .microbatch = microbatch};
  is_open_ = true;
  operation_begin_ = now;
}

void StepTrace::Leave() {
  std::lock_guard lock(mutex_);
  LeaveLocked(Now());
}

void StepTrace::EndStep() {
  std::lock_guard lock(mutex_);
  const MonotonicTime now = Now();
  LeaveLocked(now);
  last_step_ = step_.load(std::memory_order_relaxed);
  AddLocked({.begin = step_begin_, .end = now, .step = last_step_, .phase = Phase::kIdle});
}

void StepTrace::Ran(const model::Op&, const char* name, int) {
  const MonotonicTime now = Now();
  std::lock_guard lock(mutex_);
  if (operations_.size() >= operations_max_) {
    ++dropped_operations_;
    return;
  }
  operations_.push_back({operation_begin_, now, step_.load(std::memory_order_relaxed), name});
  operation_begin_ = now;
}

void StepTrace::Add(const TracedInterval& interval) {
  std::lock_guard lock(mutex_);
  AddLocked(interval);
}

void StepTrace::AskForOperations(int64_t first_step, int64_t last_step) {
  std::lock_guard lock(mutex_);
  operations_.clear();
  operations_.reserve(operations_max_);
  dropped_operations_ = 0;
  first_wanted_.store(first_step, std::memory_order_relaxed);
  last_wanted_.store(last_step, std::memory_order_relaxed);
}

StepTrace::Snapshot StepTrace::Capture(int64_t first_step, int64_t last_step) const {
  std::lock_guard lock(mutex_);
  Snapshot snapshot;
  const uint64_t kept = std::min<uint64_t>(added_, ring_.size());
  for (uint64_t number = added_ - kept; number < added_; ++number) {
    const TracedInterval& interval = ring_[number % ring_.size()];
    if (interval.step >= first_step && interval.step <= last_step) {
      snapshot.intervals.push_back(interval);
    }
  }
  for (const TracedOperation& operation : operations_) {
    if (operation.step >= first_step && operation.step <= last_step) {
      snapshot.operations.push_back(operation);
    }
  }
  snapshot.dropped_operations = dropped_operations_;
  snapshot.first_held_step = std::max(first_step_, forgotten_step_ + 1);
  snapshot.last_held_step = last_step_;
  return snapshot;
}

int64_t StepTrace::last_step() const {
  std::lock_guard lock(mutex_);
  return last_step_;
}

void StepTrace::AddLocked(const TracedInterval& interval) {
  TracedInterval& place = ring_[added_ % ring_.size()];
  if (added_ >= ring_.size()) forgotten_step_ = std::max(forgotten_step_, place.step);
  place = interval;
  ++added_;
}

void StepTrace::LeaveLocked(MonotonicTime now) {
  if (!is_open_) return;
  is_open_ = false;
  open_.end = now;
  AddLocked(open_);
}

}  // namespace troupe
