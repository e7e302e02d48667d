// The wall time of jobs, by what it was spent on. Pure: time is an argument.
//
// All time between a job's first state and its end is in exactly one phase, apart from the running
// step, which is added once it has ended. If it never does, because the job recovers or fails, it
// counts as recovering.
#ifndef TROUPE_COORDINATOR_SERVICE_JOB_PHASES_H_
#define TROUPE_COORDINATOR_SERVICE_JOB_PHASES_H_

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

enum class JobPhase { kQueued, kStarting, kProductive, kRepeated, kCheckpointStall, kRecovering };

inline constexpr JobPhase kJobPhases[] = {JobPhase::kQueued,          JobPhase::kStarting,
                                          JobPhase::kProductive,      JobPhase::kRepeated,
                                          JobPhase::kCheckpointStall, JobPhase::kRecovering};

std::string_view PhaseName(JobPhase phase);

class JobPhases {
 public:
  struct Sink {
    // The job has spent more time in the phase.
    std::function<void(const std::string& job, JobPhase phase, double seconds)> spent;
    // A job left the queue after this time.
    std::function<void(double seconds)> left_queue;
  };

  explicit JobPhases(Sink sink) : sink_(std::move(sink)) {}

  void SetState(const std::string& job, v1::JobState state, MonotonicTime now);
  // This process found the job in its catalog in the state. Nothing is known of an earlier wait.
  void Find(const std::string& job, v1::JobState state, MonotonicTime now);
  // The job has ended a step; `repeated` if an earlier group had applied it.
  void AddStep(const std::string& job, bool repeated, MonotonicTime now);
  // A commit of the job blocked training for this time, which is a part of one of its steps.
  void AddStall(const std::string& job, double seconds);
  void Forget(const std::string& job) { jobs_.erase(job); }
  // Adds the time up to now of all jobs that do not run steps.
  void Advance(MonotonicTime now);

 private:
  struct Watched {
    v1::JobState state = v1::JOB_STATE_UNSPECIFIED;
    MonotonicTime since;         // all time before it was added, or is in `running`
    double queued = 0;           // since the job entered the queue
    double running = 0;          // the running step's
    double stall = 0;            // that of commits, not added yet
    bool is_recovering = false;  // until it runs again
  };

  // Begins to watch the job, unless it has ended. Returns null if it has, or is watched already.
  Watched* Begin(const std::string& job, v1::JobState state, MonotonicTime now);
  void Accrue(const std::string& job, MonotonicTime now, Watched* watched);

  const Sink sink_;
  std::map<std::string, Watched> jobs_;  // those that have not ended
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_SERVICE_JOB_PHASES_H_
