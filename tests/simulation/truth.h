// What is right, known to nobody inside the cluster: the state that every rank must have after each
// step, and the list of invariants that were seen broken: 1 to 18 by their numbers in the
// reliability notes, the others by those below.
//
// The model that is "trained" is one 64-bit state. A step folds into it the sum of the gradients of
// the step's samples, and a sample's gradient depends on (seed, step, slot) alone. So a rank that
// dropped, repeated or reordered a step, or mixed in a gradient of another step or group, has a
// wrong state for ever after, and every layout has the same one.
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
  // Only who was asked may answer: a message of a worker that has no part in a job changes nothing.
  kAuthorization = 17,
  // A commit counts only if every host of a later placement can read all of its shards.
  kHalfCommit = 26,
  // A whole commit is not quarantined for good because one host lost its mount.
  kLostMount = 27,
  // Nothing is written into a folder of another identity.
  kForeignWrite = 28,
  // A host that fails rank after rank is not chosen again while a healthy spare is free.
  kBadHostAgain = 29,
  // Lost hosts do not spend the budget of the job's own faults.
  kBudget = 30,
  // The submitted layout is remembered, whatever the job runs on.
  kSubmittedLayout = 31,
  // A shrunk job grows back once its devices have been back for long enough;
  kGrowsBack = 32,
  // and repeats no step for it. Nor does any group repeat a step that is committed.
  kGrowsWithoutLoss = 33,
  // Only a job that has ended is deleted, when none of its ranks may live; nothing of it stays in
  // the catalog, and of its checkpoints what was asked for: all or none.
  kDeletion = 34,
};

// The sum of the gradients of the slots that `rank` of `ranks` computes.
uint64_t Gradient(uint64_t seed, int64_t step, int rank, int ranks);
uint64_t InitialState(uint64_t seed);
// The state after the step whose gradients sum up to `gradient`.
uint64_t NextState(uint64_t state, int64_t step, uint64_t gradient);
// The loss that rank 0 reports for a step: a function of seed and step, below 2^20 so that any
// float holds it.
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
  // The first ones; the rest follows from them.
  const std::vector<Violation>& violations() const { return violations_; }

 private:
  void Add(int invariant, std::string what);

  std::map<uint64_t, std::vector<uint64_t>> states_;  // by seed, then by step
  std::vector<Violation> violations_;
};

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_TRUTH_H_
