// The correct outcome, unknown to all processes in the cluster: the state that every rank must have
// after each step, and the list of invariants seen broken. Invariants 1 to 18 have their numbers in
// the reliability notes; the others are listed below.
//
// The "trained" model is one 64-bit state. A step mixes into it the sum of the gradients of the
// step's samples, and a sample's gradient depends only on (seed, step, slot). So a rank that
// dropped, repeated or reordered a step, or mixed in a gradient of another step or group, has a
// wrong state from then on, and every layout has the same state.
#ifndef TROUPE_TESTS_SIMULATION_TRUTH_H_
#define TROUPE_TESTS_SIMULATION_TRUTH_H_

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe::simulation {

inline constexpr int kSlots = 16;  // samples of a step

enum Invariant : int {
  // Only a worker that was asked may answer: a message of a worker without a part in any job
  // changes nothing.
  kAuthorization = 17,
  // A commit counts only if every host of a later placement can read all of its shards.
  kHalfCommit = 26,
  // A whole commit is not quarantined permanently because one host lost its mount.
  kLostMount = 27,
  // Nothing is written into a folder with another identity.
  kForeignWrite = 28,
  // A host that fails rank after rank is not chosen again while a healthy spare is free.
  kBadHostAgain = 29,
  // Lost hosts do not use up the restart budget for the job's own faults.
  kBudget = 30,
  // The submitted layout is remembered, whatever layout the job runs with.
  kSubmittedLayout = 31,
  // A shrunk job grows back once its devices have been back for long enough.
  kGrowsBack = 32,
  // A job repeats no step because it grows, and no group repeats a committed step.
  kGrowsWithoutLoss = 33,
  // Only a job that has ended is deleted, once none of its ranks may live. Nothing of it stays in
  // the catalog, and its checkpoints are all kept or all deleted, as requested.
  kDeletion = 34,
  // A host is blamed for a write only if a rank on it reported a failed write, or a write hung
  // there.
  kBlamedWrite = 35,
  // A worker that has sent a Goodbye is not blamed for the end of its ranks.
  kBlamedStop = 36,
  // A hang is not blamed on a rank that has reported on it and waited for another one.
  kBlamedWait = 37,
  // An image from which a job would continue stays on its worker.
  kNeededImage = 38,
  // The running jobs of a namespace use no more devices than its quota allows.
  kDeviceQuota = 39,
  // The index of the coordinator's jobs has what loops over all of them find.
  kJobIndex = 40,
};

// The sum of the gradients of the slots that `rank` of `ranks` computes.
uint64_t Gradient(uint64_t seed, int64_t step, int rank, int ranks);
uint64_t InitialState(uint64_t seed);
// The state after the step in which the gradients sum up to `gradient`.
uint64_t NextState(uint64_t state, int64_t step, uint64_t gradient);
// The loss that rank 0 reports for a step: a function of seed and step, below 2^20 so that any
// float represents it exactly.
double Loss(uint64_t seed, int64_t step);

struct Violation {
  int invariant = 0;
  std::string what;
};

class Truth {
 public:
  // The state after `step` steps.
  uint64_t State(uint64_t seed, int64_t step);

  template <typename... Args>
  void Violate(int invariant, fmt::format_string<Args...> format, Args&&... args) {
    Add(invariant, fmt::format(format, std::forward<Args>(args)...));
  }
  void Check(bool holds, int invariant, const std::string& what) {
    if (!holds) Add(invariant, what);
  }
  // The first violations; later ones are usually consequences and are not kept.
  const std::vector<Violation>& violations() const { return violations_; }

 private:
  void Add(int invariant, std::string what);

  std::map<uint64_t, std::vector<uint64_t>> states_;  // by seed, then by step
  std::vector<Violation> violations_;
};

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_TRUTH_H_
