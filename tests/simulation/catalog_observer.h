// Observes, from outside the coordinator, what becomes durable in its catalog, and checks the
// invariants visible there: epochs only rise, leases do not overlap, a commit is whole, a head is
// restorable, acknowledged calls survive, an end has one cause.
#ifndef TROUPE_TESTS_SIMULATION_CATALOG_OBSERVER_H_
#define TROUPE_TESTS_SIMULATION_CATALOG_OBSERVER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/store/store.h"
#include "coordinator/machine/machine.h"
#include "tests/simulation/world.h"
#include "troupe/v1/catalog.pb.h"
#include "troupe/v1/checkpoint.pb.h"
#include "troupe/v1/service.pb.h"

namespace troupe::simulation {

// "lease/worker-3/0000…" → "worker-3".
inline std::string LeasedWorker(const std::string& key) {
  const std::string rest = key.substr(key.find('/') + 1);
  return rest.substr(0, rest.find('/'));
}

class CatalogObserver {
 public:
  explicit CatalogObserver(World& world) : world_(world) {}

  // A coordinator begins to serve. Returns the number of its life, with which it tags its writes.
  uint64_t CoordinatorStarts(uint64_t leader_epoch, const CatalogImage& image);
  // The next write comes from this coordinator, which holds this leader epoch.
  void WritesAs(uint64_t life, uint64_t leader_epoch) { writer_ = {life, leader_epoch}; }
  // A batch is durable.
  void OnWrite(const WriteBatch& batch);
  // Called after each event: checks that the coordinator's memory is bounded.
  void Observe(const CoordinatorState& state);

  // The coordinator's disk is lost: earlier facts no longer constrain later ones.
  void CatalogLost();
  // Jobs that were known when the catalog was lost.
  const std::set<std::string>& lost_jobs() const { return lost_jobs_; }

  // The client asks to resume this job; without that an end is final.
  void ResumeAsked(const std::string& job) { resumes_.insert(job); }
  // The client asks to delete the job, and its checkpoints if `checkpoints`.
  void DeletionAsked(const std::string& job, bool checkpoints) {
    asked_deletions_[job] = checkpoints;
  }
  // The coordinator is configured to keep few ended jobs.
  void EndedMayGo() { ended_may_go_ = true; }
  // The client got the answer that its request made this job; that the job is cancelled; or that it
  // is deleted.
  void SubmitAcknowledged(const std::string& request_id, const std::string& job);
  void CancelAcknowledged(const std::string& job);
  void DeletionAcknowledged(const std::string& job);

  const std::map<std::string, v1::JobRecord>& jobs() const { return jobs_; }
  const std::map<std::string, v1::JobSpec>& specs() const { return specs_; }
  // The job's spec as its users requested it last.
  const v1::JobSpec& submitted(const std::string& job) const { return submitted_.at(job); }
  const std::map<std::string, v1::LeaseRecord>& leases() const { return leases_; }
  const std::map<std::string, v1::CheckpointRecord>& checkpoints() const { return checkpoints_; }
  // The placement of the job's newest group; null before the first.
  const v1::GroupRecord* Group(const std::string& job) const;
  bool HasEnded(const std::string& job) const;
  // Whether the job was in the catalog and no longer is.
  bool IsDeleted(const std::string& job) const;
  bool HasPinned(const std::string& job) const;
  uint64_t commits() const { return commits_; }
  // Number of commits that retention deleted.
  uint64_t deletions() const { return deletions_; }
  // Number of times that a job fell back to images of its ranks' states.
  uint64_t images() const { return images_; }
  uint64_t deleted_jobs() const { return deleted_.size(); }
  // Commits of jobs that were deleted without their checkpoints.
  const std::vector<v1::CheckpointRecord>& kept_commits() const { return kept_commits_; }
  uint64_t resumed() const { return resumed_; }
  // Number of jobs that waited for the quota of their namespace.
  uint64_t quota_waits() const { return quota_waiters_.size(); }
  uint64_t history_rows() const { return history_rows_; }
  // The newest commit of the job that is not quarantined; null if there is none.
  const v1::CheckpointRecord* Head(const std::string& job) const;
  // Whether a commit of that step is quarantined.
  bool HasQuarantined(const std::string& job, int64_t step) const;
  // A random commit of a random job, for faults; null if there is none.
  const v1::CheckpointRecord* AnyCommit(SeededRandom& random) const;

 private:
  void OnJob(const std::string& id, std::string_view value);
  void OnSpec(const std::string& id, std::string_view value);
  void OnGroup(const std::string& id, std::string_view value);
  void OnImages(const std::string& id, const std::optional<std::string>& value);
  void OnHistory(std::string_view key, std::string_view value);
  // Checks that the row does not repeat a step that its group had to begin after.
  void CheckRepetition(const std::string& id, const v1::StepEvent& row);
  // A row of the job's events was written or deleted: few of each kind are kept.
  void OnEvent(const std::string& key, const std::optional<std::string>& value);
  // Jobs that the batch deletes or begins to delete.
  std::set<std::string> JobsThatGo(const WriteBatch& batch) const;
  void OnJobDeleted(const std::string& id);
  // Checks, after the whole batch is written, that nothing is left of deleted jobs.
  void CheckNothingIsLeft(const std::set<std::string>& going);
  void OnRequest(const std::string& key, const std::optional<std::string>& value);
  void OnCheckpoint(const std::string& key, const std::optional<std::string>& value,
                    const std::set<std::string>& going);
  // Checks that a later placement can use the commit: it is whole, of one step, with the right
  // state.
  void CheckCommit(const std::string& key, const v1::CheckpointRecord& record);
  void OnDeletion(const std::string& key, const v1::CheckpointRecord& record, bool was_pinned);
  void OnLease(const std::string& key, const std::optional<std::string>& value);
  void CheckQuotas(const CoordinatorState& state);
  // Whether the commit was found whole when it was read back, and any damage since is the run's,
  // which no process can know.
  bool IsWhole(const v1::CheckpointRecord& commit) const;

  // A batch of the current writer takes effect: only the newest leader epoch may write, and each
  // epoch belongs to one coordinator.
  void OnWriter();

  struct Writer {
    uint64_t life = 0;  // 0: none has begun
    uint64_t leader_epoch = 0;
  };

  World& world_;
  uint64_t leader_epoch_ = 0;  // the highest epoch that served
  uint64_t last_life_ = 0;
  Writer writer_;
  std::map<uint64_t, uint64_t> lives_;  // leader epoch → life that writes in it
  std::map<std::string, v1::JobRecord> jobs_;
  std::map<std::string, v1::JobSpec> specs_;
  std::map<std::string, v1::JobSpec> submitted_;
  std::map<std::string, v1::GroupRecord> groups_;
  // The newest group epoch for which the job stopped in order to grow or to move.
  std::map<std::string, uint64_t> grown_;
  // The highest recorded step of each group, by job and group epoch.
  std::map<std::string, std::map<uint64_t, int64_t>> highest_rows_;
  std::set<std::string> resumes_;  // jobs that may continue after their end
  std::set<std::string> lost_jobs_;
  std::set<std::string> keys_;  // keys of all rows
  std::map<std::string, std::string> requests_;
  std::map<std::string, std::string> events_;    // job and kind, by key
  std::map<std::string, int> events_of_kind_;    // by job and kind
  std::map<std::string, bool> asked_deletions_;  // with checkpoints or not, by job
  bool ended_may_go_ = false;
  std::set<std::string> deleted_;
  std::vector<v1::CheckpointRecord> kept_commits_;
  std::map<std::string, v1::CheckpointRecord> checkpoints_;  // by key
  std::map<std::string, v1::LeaseRecord> leases_;            // by key
  std::set<std::pair<std::string, uint64_t>> steps_;         // history keys with group epoch
  std::map<std::string, std::string> acknowledged_submits_;  // request id → job
  std::set<std::string> acknowledged_cancels_;
  uint64_t commits_ = 0;
  uint64_t deletions_ = 0;
  uint64_t history_rows_ = 0;
  uint64_t images_ = 0;
  uint64_t resumed_ = 0;
  std::set<std::string> quota_waiters_;
  uint64_t observations_ = 0;
};

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_CATALOG_OBSERVER_H_
