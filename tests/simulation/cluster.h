// One run of a whole cluster: a coordinator, 64 workers and a client, jobs drawn by the seed, a
// phase of faults, a phase without, and the verdict.
#ifndef TROUPE_TESTS_SIMULATION_CLUSTER_H_
#define TROUPE_TESTS_SIMULATION_CLUSTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/options.h"
#include "tests/simulation/coordinator_process.h"
#include "tests/simulation/truth.h"

namespace troupe::simulation {

struct ClusterOptions {
  uint64_t seed = 0;
  int workers = 64;
  uint64_t max_events = 50'000;
  KnownBugs machine_bugs;
  ShellBugs shell_bugs;
};

struct ClusterResult {
  uint64_t seed = 0;
  uint64_t hash = 0;
  uint64_t events = 0;
  double virtual_seconds = 0;
  double heal_seconds = 0;  // from the end of the faults until every job had ended
  uint64_t steps_applied = 0;
  uint64_t commits = 0;
  uint64_t deletions = 0;  // of commits, by retention
  uint64_t history_rows = 0;
  uint64_t coordinator_starts = 0;
  int64_t restarts = 0;  // of jobs
  std::vector<Violation> violations;
  std::vector<std::string> faults;
  std::string story;  // jobs, violations, faults and the last events, for whoever looks for the bug

  bool ok() const { return violations.empty(); }
};

ClusterResult RunCluster(const ClusterOptions& options);

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_CLUSTER_H_
