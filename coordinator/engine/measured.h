// The message from the engine's actor to the actor of metrics: measurements, and figures copied
// from the state, which only the engine's actor may read.
#ifndef TROUPE_COORDINATOR_ENGINE_MEASURED_H_
#define TROUPE_COORDINATOR_ENGINE_MEASURED_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/store/store.h"
#include "coordinator/machine/coordinator_state.h"
#include "coordinator/state/event.h"
#include "coordinator/state/fleet.h"
#include "coordinator/state/job_state.h"

namespace troupe {

// The way in which a job runs, as labels describe it.
struct JobShape {
  std::string layout;     // such as "pipe=2,data_shard=4"; "1" for a single rank
  std::string precision;  // the intended one
  std::string schedule;
  bool operator==(const JobShape&) const = default;
};

struct JobFigures {
  struct Commit {
    int64_t step = 0;
    int64_t wall_time_ns = 0;
  };

  std::string job;
  v1::JobState state = v1::JOB_STATE_UNSPECIFIED;  // as shown to users
  int64_t step = 0;
  std::optional<Commit> newest_commit;
  int64_t ended_wall_ns = 0;  // 0: it has not ended
  JobShape shape;
  int ranks = 0;
  int64_t checkpoint_steps = 0;    // the interval; 0: none
  int64_t checkpoint_seconds = 0;  // the interval, if checkpoint_steps is 0; 0: none
};

// A job that this coordinator found in its catalog: its counters continue from these values.
struct RecoveredJob {
  JobFigures figures;
  int64_t restarts = 0;
  int64_t quarantined = 0;
  int64_t skipped = 0;
};

// Durations of the engine's actor since the last figures of the control plane.
struct DurationCounts {
  static constexpr std::array<double, 14> kBounds = {
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5};
  std::array<double, kBounds.size() + 1> counts{};
  double sum = 0;

  void Add(double seconds);
};

// The figures of the coordinator itself.
struct ControlFigures {
  uint64_t leader_epoch = 0;
  int64_t sessions = 0;
  int64_t watchers = 0;
  int64_t devices_leased = 0;
  int64_t devices_free = 0;
  int64_t devices_condemned = 0;  // neither leased nor free
  int64_t devices_draining = 0;   // neither leased nor condemned, of workers that drain
  int64_t devices_wanted = 0;     // those that jobs in the queue wait for
  std::optional<StoreFigures> catalog;
  DurationCounts turns;  // from the first event of a batch until its effects are performed
  DurationCounts catalog_writes;
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
  std::optional<ControlFigures> control;
  uint64_t dropped = 0;  // measurements lost before these, because the mailbox was full
};

JobFigures FiguresOf(const Job& job);
RecoveredJob RecoveredFiguresOf(const Job& job);
std::vector<WorkerFigures> FiguresOf(const Fleet& fleet);
// Without watchers and durations, which the engine's actor has.
ControlFigures ControlFiguresOf(const CoordinatorState& state);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_ENGINE_MEASURED_H_
