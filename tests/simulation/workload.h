// The requests of the users of one run: jobs drawn from the seed, and calls about them.
#ifndef TROUPE_TESTS_SIMULATION_WORKLOAD_H_
#define TROUPE_TESTS_SIMULATION_WORKLOAD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/state/namespaces.h"
#include "tests/simulation/client_process.h"
#include "tests/simulation/mix.h"
#include "tests/simulation/world.h"
#include "troupe/v1/job.pb.h"

namespace troupe::simulation {

// The usual checkpoint.final_save_seconds, in detection times. It is longer than any mount is lost,
// so that a lost mount alone loses no final checkpoint.
inline constexpr int kFinalSave = 12;

// The lengths of a run in units of the detection time, so that every run has the same number of
// heartbeats.
inline constexpr int kFaultPhase = 10;
inline constexpr int kHealLimit = 60;

// Folders of checkpoints: one that all hosts mount, and one that is private to each host.
inline constexpr const char* kSharedFolder = "/shared";
inline constexpr const char* kPrivateFolder = "/private";

struct Workload {
  double detection_seconds = 3;
  std::vector<v1::JobSpec> specs;
  std::map<std::string, JobNature> natures;
  std::vector<PlannedCall> calls;
};

Workload DrawWorkload(uint64_t seed, const Mix& mix);

// The cluster's time limits, with shorter ones for rare conditions: with the product's limits a run
// would consist mostly of heartbeats.
TimeLimits LimitsFor(double detection_seconds);

// A quota of devices that suffices for each job, but not for all of them together.
std::shared_ptr<const Namespaces> QuotaFor(const Workload& load);

inline bool HasPrivateFolder(const v1::JobSpec& spec) {
  return spec.checkpoint().folder() == kPrivateFolder;
}

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_WORKLOAD_H_
