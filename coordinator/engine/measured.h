// The message from the engine's actor to the actor of metrics: measurements, and figures copied
// from the state, which only the engine's actor may read.
#ifndef TROUPE_COORDINATOR_ENGINE_MEASURED_H_
#define TROUPE_COORDINATOR_ENGINE_MEASURED_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/state/event.h"
#include "coordinator/state/fleet.h"
#include "coordinator/state/job_state.h"

namespace troupe {

struct JobFigures {
  struct Commit {
    int64_t step = 0;
    int64_t wall_time_ns = 0;
  };

  std::string job;
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;  // as shown to users
  int64_t step = 0;
  std::optional<Commit> newest_commit;
};

// A job that this coordinator found in its catalog: its counters continue from these values.
struct RecoveredJob {
  JobFigures figures;
  int64_t restarts = 0;
  int64_t quarantined = 0;
  int64_t skipped = 0;
};

struct WorkerFigures {
  std::string worker;
  bool is_connected = false;
  int64_t memory_bytes = 0;
};

struct Measured {
  static constexpr std::string_view kMessageName = "metrics.measured";

  std::vector<Measurement> measurements;
  std::vector<std::string> forgotten_jobs;  // their series go, after the measurements
  std::vector<JobFigures> jobs;
  std::vector<RecoveredJob> recovered;
  std::optional<std::vector<WorkerFigures>> workers;  // all of them
  uint64_t dropped = 0;  // measurements lost before these, because the mailbox was full
};

JobFigures FiguresOf(const Job& job);
RecoveredJob RecoveredFiguresOf(const Job& job);
std::vector<WorkerFigures> FiguresOf(const Fleet& fleet);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ENGINE_MEASURED_H_
