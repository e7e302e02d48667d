// The timers of a job, as a table: a new one is one row. Pure.
#ifndef TROUPE_COORDINATOR_JOB_JOB_TIMERS_H_
#define TROUPE_COORDINATOR_JOB_JOB_TIMERS_H_

#include <optional>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/time_limits.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/turn.h"

namespace troupe {

struct JobTimer {
  std::string_view name;
  // When the action is due, given what the job does at present; absent: it is not.
  std::optional<MonotonicTime> (*due)(const Job& job, const TimeLimits& limits);
  // REQUIRES: it is due.
  void (*act)(Job& job, Turn& turn);
};

// In the order in which those that are due together act. An action may end the group or the job,
// and with it what the timers after it are about.
std::span<const JobTimer> JobTimers();

// Acts for each timer that is due at turn.now.
void OnJobTime(Job& job, Turn& turn);

// When the next timer is due.
std::optional<MonotonicTime> NextJobDeadline(const Job& job, const TimeLimits& limits);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_JOB_TIMERS_H_
