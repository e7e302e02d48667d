// What the users of one run want: jobs drawn by the seed, and what they ask for meanwhile.
#ifndef TROUPE_TESTS_SIMULATION_WORKLOAD_H_
#define TROUPE_TESTS_SIMULATION_WORKLOAD_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/simulation/client_process.h"
#include "tests/simulation/mix.h"
#include "tests/simulation/world.h"
#include "troupe/v1/job.pb.h"

namespace troupe::simulation {

// The lengths of a run in units of the detection time, so that every run has as many heartbeats.
inline constexpr int kFaultPhase = 10;
inline constexpr int kHealLimit = 60;

// Folders of checkpoints: what all hosts mount, and what each host has for itself.
inline constexpr const char* kSharedFolder = "/shared";
inline constexpr const char* kPrivateFolder = "/private";

struct Workload {
  double detection_seconds = 3;
  std::vector<v1::JobSpec> specs;
  std::map<std::string, JobNature> natures;
  std::vector<PlannedCall> calls;
};

Workload DrawWorkload(uint64_t seed, const Mix& mix);

// The cluster's limits, but for those that wait out what is rarely wrong: with the product's a run
// would be heartbeats for the most part.
TimeLimits LimitsFor(double detection_seconds);

inline bool HasFolder(const v1::JobSpec& spec) { return !spec.checkpoint().folder().empty(); }
inline bool HasPrivateFolder(const v1::JobSpec& spec) {
  return spec.checkpoint().folder() == kPrivateFolder;
}

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_WORKLOAD_H_
