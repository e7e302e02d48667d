// Judges a run at its end: every runnable job ended as it should, its head can be restored, and no
// device is still leased.
#ifndef TROUPE_TESTS_SIMULATION_VERDICT_H_
#define TROUPE_TESTS_SIMULATION_VERDICT_H_

#include <set>
#include <string>
#include <vector>

#include "tests/simulation/catalog_observer.h"
#include "tests/simulation/client_process.h"
#include "tests/simulation/mishaps.h"
#include "tests/simulation/workload.h"
#include "tests/simulation/world.h"

namespace troupe::simulation {

class Verdict {
 public:
  Verdict(World& world, const CatalogObserver& catalog, const Mishaps& mishaps,
          const Workload& load, const std::vector<CallOutcome>& outcomes,
          const KeepEnded& keep_ended)
      : world_(world),
        catalog_(catalog),
        mishaps_(mishaps),
        load_(load),
        outcomes_(outcomes),
        keep_ended_(keep_ended) {}

  // Whether every call is answered and every job that can end has ended. A job may wait for more
  // devices than the workers that did not leave permanently have, or be lost with the catalog.
  // `left`: workers that never return.
  bool AllEnded(int devices, const std::set<std::string>& left) const;
  // REQUIRES: AllEnded.
  void Judge(const std::set<std::string>& left);

 private:
  bool IsOver(const std::string& job, int devices) const;
  // Whether no more ended jobs are kept than configured, except jobs with their only state on their
  // workers.
  bool KeepsFewEnded() const;
  // Whether the catalog was lost before the job had a commit from which it could be rebuilt.
  bool IsLost(const std::string& job) const;
  // Whether other hosts do not see the job's folder: by its spec, or because it began on a single
  // host while that host's mount was lost, which the host cannot know.
  bool HasLoneFolder(const std::string& id) const;
  // Whether the job may end without success for this cause.
  bool MayFail(const std::string& id, const std::string& cause) const;
  void JudgeJob(const std::string& id);
  void JudgeHead(const std::string& id, const v1::JobRecord& job);

  World& world_;
  const CatalogObserver& catalog_;
  const Mishaps& mishaps_;
  const Workload& load_;
  const std::vector<CallOutcome>& outcomes_;
  const KeepEnded keep_ended_;
};

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_VERDICT_H_
