// Watches what becomes durable in the coordinator's catalog, from outside the coordinator, and
// checks the invariants that can be told from there: epochs only rise, leases do not overlap, a
// commit is whole, a head is restorable, acknowledged calls survive, an end has one cause.
#ifndef TROUPE_TESTS_SIMULATION_CATALOG_OBSERVER_H_
#define TROUPE_TESTS_SIMULATION_CATALOG_OBSERVER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/store.h"
#include "coordinator/machine.h"
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
  // The next write is of this coordinator, which holds this leader epoch.
  void WritesAs(uint64_t life, uint64_t leader_epoch) { writer_ = {life, leader_epoch}; }
  // A batch is on the disk.
  void OnWrite(const WriteBatch& batch);
  // After each event: its memory is bounded.
  void Observe(const CoordinatorState& state);

  // The coordinator's disk is lost: nothing of before binds what comes.
  void CatalogLost();
  // Jobs that were known when the catalog was lost.
  const std::set<std::string>& lost_jobs() const { return lost_jobs_; }

  // The client asks for this job to go on; until then an end is for good.
  void ResumeAsked(const std::string& job) { resumes_.insert(job); }
  // The client asks for the job to be deleted, and its checkpoints.
  void DeletionAsked(const std::string& job, bool checkpoints) {
    asked_deletions_[job] = checkpoints;
  }
  // The coordinator is told to keep few jobs that have ended.
  void EndedMayGo() { ended_may_go_ = true; }
  // The client was told that its request made this job; that the job is cancelled, or deleted.
  void SubmitAcknowledged(const std::string& request_id, const std::string& job);
  void CancelAcknowledged(const std::string& job);
  void DeletionAcknowledged(const std::string& job);

  const std::map<std::string, v1::JobRecord>& jobs() const { return jobs_; }
  const std::map<std::string, v1::JobSpec>& specs() const { return specs_; }
  // As its users asked for it last.
  const v1::JobSpec& submitted(const std::string& job) const { return submitted_.at(job); }
  const std::map<std::string, v1::LeaseRecord>& leases() const { return leases_; }
  const std::map<std::string, v1::CheckpointRecord>& checkpoints() const { return checkpoints_; }
  // The placement of the job's newest group; null before the first.
  const v1::GroupRecord* Group(const std::string& job) const;
  bool HasEnded(const std::string& job) const;
  // It was in the catalog and is no more.
  bool IsDeleted(const std::string& job) const;
  bool HasPinned(const std::string& job) const;
  uint64_t commits() const { return commits_; }
  // Commits that retention let go.
  uint64_t deletions() const { return deletions_; }
  uint64_t deleted_jobs() const { return deleted_.size(); }
  // Commits of jobs that were deleted without their checkpoints.
  const std::vector<v1::CheckpointRecord>& kept_commits() const { return kept_commits_; }
  uint64_t resumed() const { return resumed_; }
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
  void OnHistory(std::string_view key, std::string_view value);
  // Whether the row repeats a step that its group was to begin after.
  void CheckRepetition(const std::string& id, const v1::StepEvent& row);
  // A row of the job's events is there, or gone: of each kind few are kept.
  void OnEvent(const std::string& key, const std::optional<std::string>& value);
  // Jobs that the batch deletes or begins to.
  std::set<std::string> JobsThatGo(const WriteBatch& batch) const;
  void OnJobDeleted(const std::string& id);
  // All of the batch is written: of the jobs that are gone nothing is left.
  void CheckNothingIsLeft(const std::set<std::string>& going);
  void OnRequest(const std::string& key, const std::optional<std::string>& value);
  void OnCheckpoint(const std::string& key, const std::optional<std::string>& value,
                    const std::set<std::string>& going);
  // Whether it is what a later placement needs: whole, of one step, of the right state.
  void CheckCommit(const std::string& key, const v1::CheckpointRecord& record);
  void OnDeletion(const std::string& key, const v1::CheckpointRecord& record, bool was_pinned);
  void OnLease(const std::string& key, const std::optional<std::string>& value);
  // It was read back and found whole, and all that happened to it since is the run's damage, of
  // which nobody can know.
  bool IsWhole(const v1::CheckpointRecord& commit) const;

  // A batch of the writer at hand takes effect: only the newest leader epoch's may, and each epoch
  // is one coordinator's.
  void OnWriter();

  struct Writer {
    uint64_t life = 0;  // 0: none has begun
    uint64_t leader_epoch = 0;
  };

  World& world_;
  uint64_t leader_epoch_ = 0;  // the highest that served
  uint64_t last_life_ = 0;
  Writer writer_;
  std::map<uint64_t, uint64_t> lives_;  // leader epoch → the life that writes in it
  std::map<std::string, v1::JobRecord> jobs_;
  std::map<std::string, v1::JobSpec> specs_;
  std::map<std::string, v1::JobSpec> submitted_;
  std::map<std::string, v1::GroupRecord> groups_;
  std::map<std::string, uint64_t>
      grown_;  // the newest group epoch for which the job stopped to grow
  // The highest step recorded of any group, by job and group epoch.
  std::map<std::string, std::map<uint64_t, int64_t>> highest_rows_;
  std::set<std::string> resumes_;  // jobs that may go on after their end
  std::set<std::string> lost_jobs_;
  std::set<std::string> keys_;  // the keys of all rows
  std::map<std::string, std::string> requests_;
  std::map<std::string, std::string> events_;    // job and kind, by key
  std::map<std::string, int> events_of_kind_;    // by job and kind
  std::map<std::string, bool> asked_deletions_;  // whether with checkpoints, by job
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
  uint64_t resumed_ = 0;
};

}  // namespace troupe::simulation

#endif  // TROUPE_TESTS_SIMULATION_CATALOG_OBSERVER_H_
