#include "coordinator/job/job_pace.h"

#include <algorithm>
#include <vector>

#include "coordinator/faults/hang_limit.h"
#include "coordinator/job/attempt_writers.h"
#include "plan/cost/checkpoint_write.h"
#include "plan/cost/slowest_step.h"
#include "plan/job/job_rules.h"

namespace troupe {
namespace {

// Duration of the validation that may follow the next step, in steps' worth of samples; 0: none.
double ValidationSteps(const Job& job) {
  const v1::TrainingSpec& training = job.spec.training();
  const ValidatedSteps validated{.interval = training.validation_interval(), .last = job.steps()};
  const int64_t next = job.record.step() + 1;
  for (int64_t step = next; step <= next + job.plan.control_lag_steps(); ++step) {
    if (!validated.Has(step)) continue;
    return std::max(1.0,
                    static_cast<double>(training.validation_samples()) /
                        static_cast<double>(std::max<int64_t>(1, training.global_batch_size())));
  }
  return 0;
}

// Longest time that a step's update may wait for the state copy of a save in progress.
double CopySeconds(const Job& job) {
  const bool saves = std::any_of(job.attempts.begin(), job.attempts.end(),
                                 [](const auto& entry) { return entry.second.begun; });
  return saves ? CheckpointCopySeconds(job.spec, job.plan) : 0;
}

}  // namespace

double MedianStepSeconds(const Job& job) {
  if (job.step_seconds.empty()) return 0;
  std::vector<double> sorted(job.step_seconds.begin(), job.step_seconds.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

Duration HangLimitOf(const Job& job, const TimeLimits& limits) {
  HangInputs inputs{.stated_seconds = job.spec.fault_tolerance().hang_seconds(),
                    .unmeasured_step_seconds = SlowestStepSeconds(job.plan),
                    .save_seconds = ToSeconds(WritingAllowance(job)) + CopySeconds(job)};
  if (job.group) inputs.steps_seen = job.group->steps_seen;
  if (inputs.steps_seen < kPaceSteps) {
    // Step times known from former epochs.
    inputs.stated_seconds = std::max(inputs.stated_seconds, kHangSteps * MedianStepSeconds(job));
  } else {
    for (const double seconds : job.group->recent_step_seconds)
      inputs.slowest_step_seconds = std::max(inputs.slowest_step_seconds, seconds);
    inputs.validation_steps = ValidationSteps(job);
  }
  return HangLimit(inputs, limits);
}

}  // namespace troupe
