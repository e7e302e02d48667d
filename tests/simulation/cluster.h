// One run of a whole cluster: a coordinator, workers and a client, jobs and a mix of faults drawn
// from the seed, a phase with faults, a phase without, and the verdict.
#ifndef TROUPE_TESTS_SIMULATION_CLUSTER_H_
#define TROUPE_TESTS_SIMULATION_CLUSTER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/state/options.h"
#include "tests/simulation/coordinator_process.h"
#include "tests/simulation/mix.h"
#include "tests/simulation/truth.h"
#include "tests/simulation/world.h"

namespace troupe::simulation {

struct ClusterOptions {
  uint64_t seed = 0;
  std::optional<Mix> mix;  // replaces the mix that the seed draws
  // Twice the maximum that the first 400 seeds need.
  uint64_t max_events = 200'000;
  KnownBugs machine_bugs;
  ShellBugs shell_bugs;
  WorkerBugs worker_bugs;
};

struct ClusterResult {
  uint64_t seed = 0;
  uint64_t hash = 0;
  uint64_t events = 0;
  double virtual_seconds = 0;
  double heal_seconds = 0;  // from the end of the faults until every job had ended
  uint64_t steps_applied = 0;
  uint64_t commits = 0;
  uint64_t deletions = 0;  // commits that retention deleted
  uint64_t history_rows = 0;
  uint64_t coordinator_starts = 0;
  int64_t restarts = 0;  // restarts of jobs
  uint64_t shrinks = 0;  // groups that began on fewer ranks than submitted
  uint64_t growths = 0;
  uint64_t moves = 0;            // groups that left draining workers after a commit
  uint64_t strikes = 0;          // groups that failed because of a bad host
  uint64_t blamed_hangs = 0;     // hangs that were blamed on one rank
  uint64_t goodbyes = 0;         // groups that ended because a worker was asked to stop
  uint64_t lost_mounts = 0;      // workers that lost the shared folder
  uint64_t refused_folders = 0;  // jobs that ended because their hosts do not share the folder
  // Jobs that succeeded after more restarts than their budget, because lost hosts do not count.
  uint64_t saved_by_budget = 0;
  uint64_t resumed = 0;              // jobs that continued after an end
  uint64_t rebuilt = 0;              // jobs known again after the catalog was lost
  uint64_t refused_alterations = 0;  // refused requests that reused a request id with another job
  uint64_t deleted_jobs = 0;
  uint64_t lies = 0;  // by strangers
  uint64_t left = 0;  // workers that never returned
  // Lives of daemons that began with a clock behind their previous life's.
  uint64_t clocks_set_back = 0;
  uint64_t reports_during_saves = 0;  // reports of a step during which a save was in flight
  uint64_t hung_saves = 0;            // saves that blocked
  uint64_t waiting_saves = 0;         // saves that waited for an earlier one of the same rank
  uint64_t images = 0;                // jobs that fell back to images of their ranks' states
  uint64_t quota_waits = 0;           // jobs that waited for the quota of their namespace
  std::vector<Violation> violations;
  std::vector<std::string> faults;
  std::string story;  // jobs, violations, faults and the last events, for debugging

  bool ok() const { return violations.empty(); }
};

ClusterResult RunCluster(const ClusterOptions& options);

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_CLUSTER_H_
