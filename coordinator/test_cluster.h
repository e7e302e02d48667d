// A coordinator's state machine on an in-memory store, with workers played by the test; the tests
// of the state machines use it. Every event is stepped, its writes are made durable, and its
// messages are delivered to the workers' inboxes.
#ifndef TROUPE_COORDINATOR_TEST_CLUSTER_H_
#define TROUPE_COORDINATOR_TEST_CLUSTER_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/store/memory_store.h"
#include "coordinator/machine/machine.h"
#include "coordinator/state/job_state.h"

namespace troupe {

// A planner with data_parallel_replicate_degree ranks, placed on the free devices in order.
Planner MakeTestPlanner();

// A spec with every field that the machine reads.
v1::JobSpec TestSpec(const std::string& name, int ranks, int64_t steps);

struct TestWorker {
  std::string name;
  uint64_t incarnation = 0;
  SessionId session = 0;
  int devices = 1;
  std::vector<v1::CoordinatorMessage> inbox;
  std::vector<v1::HeldGroup> held;       // reported by the next Hello
  std::vector<v1::HeldImage> images;     // likewise
  std::optional<v1::Draining> draining;  // likewise
};

class TestCluster {
 public:
  explicit TestCluster(double detection_seconds = 3);

  CoordinatorState& state() { return state_; }
  MemoryStore& store() { return store_; }
  const Job& job(const std::string& id) const { return state_.jobs.at(id); }
  TestWorker& worker(const std::string& name) { return workers_.at(name); }

  // Steps one event, performs its effects and returns them.
  Effects Do(decltype(Event::what) what);
  // Steps one event and makes its writes durable, with no other effect: the coordinator dies and a
  // new one recovers. All streams are closed.
  void DoAndDie(decltype(Event::what) what);
  // The coordinator dies between two events and a new one recovers.
  void Restart();
  // Advances time, with a tick at every deadline in between.
  void Pass(Duration duration);
  // Advances time while the coordinator is stalled: one tick, at the end.
  void StandStill(Duration duration);

  // Connects a new life of the worker and sends its Hello; `held` lists what runs according
  // to its inbox.
  TestWorker& Connect(const std::string& name, int devices = 1);
  // Connects the same life again.
  void Reconnect(const std::string& name);
  void Disconnect(const std::string& name);
  // Delivers `message` on the stream of `worker`.
  Effects SendFrom(const std::string& worker, v1::WorkerMessage message);
  // Every worker with a stream sends a message, so that no lease expires.
  void Heartbeat();

  // Creates the job and returns the reply.
  Reply Submit(const v1::JobSpec& spec, const std::string& request_id = "");

  // Likewise, with an id that stays used when the job has been removed.
  Reply SubmitOnce(const v1::JobSpec& spec, const std::string& request_id);

  // Plays the workers of the job until its ranks run: addresses, then ready at `step`.
  void StartRanks(const std::string& job, int64_t step = 0);
  // Sends rank `rank`'s report of `step`.
  Effects Report(const std::string& job, int64_t step, int32_t rank = 0);
  // Sends the vote of `rank`, or of all ranks.
  Effects Vote(const std::string& job, int64_t attempt, int64_t step, int32_t rank);
  void VoteAll(const std::string& job, int64_t attempt, int64_t step);
  Effects WriteManifest(const std::string& job, int64_t attempt);
  // Sends the votes of all ranks and the manifest.
  void Commit(const std::string& job, int64_t attempt, int64_t step);
  // Rank 0's worker answers VerifyCheckpoint; ok and damaged are not both true.
  Effects Verified(const std::string& job, int64_t attempt, bool ok, bool damaged = false);
  // Rank 0's worker answers the newest DeleteCheckpoint in its inbox.
  Effects Deleted(const std::string& job, int64_t attempt);
  // Rank 0's worker answers every VerifyCheckpoint in its inbox, and those that follow, with
  // "whole"; they are removed from the inbox.
  void VerifyAll(const std::string& job);
  // Every rank of the epoch reports that it stopped as asked.
  void StopRanks(const std::string& job, uint64_t epoch, const std::vector<std::string>& workers);
  // The rank's process is killed from outside, or, with an exit code, exits by itself.
  Effects Crash(const std::string& job, int32_t rank, int exit_code = 0);

  // The newest message of its kind in the worker's inbox; null if there is none.
  const v1::CoordinatorMessage* Last(const std::string& worker,
                                     v1::CoordinatorMessage::MessageCase kind);
  int Count(const std::string& worker, v1::CoordinatorMessage::MessageCase kind);
  // The job's events, in order.
  std::vector<std::string> Events(const std::string& job) const;

  std::vector<Reply> replies;
  std::vector<JobUpdate> updates;
  CallId next_call = 1;
  int64_t wall_ns = 0;

 private:
  std::string WorkerOf(const std::string& job, int32_t rank) const;
  void Perform(const Effects& effects);
  void Recover();

  MemoryStore store_;
  CoordinatorOptions options_;
  CoordinatorState state_;
  MonotonicTime now_{std::chrono::hours(1)};
  SessionId last_session_ = 0;
  std::map<std::string, TestWorker> workers_;
};

// Job `a` of `ranks` ranks on worker-0 …, running, with due checkpoints every 10 of its steps.
void RunJob(TestCluster& cluster, int ranks, int workers, int64_t steps = 100);
// Sends rank 0's reports of job `a`.
void ReportUpTo(TestCluster& cluster, int64_t from, int64_t to);
// Seconds until the running group of job `a` is broken, with heartbeats all along; limit + 1 if it
// is not.
int SecondsUntilBroken(TestCluster& cluster, int limit);
// The attempt of `step` of job `a`; the test fails if there is none.
int64_t AttemptOf(const TestCluster& cluster, int64_t step);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_TEST_CLUSTER_H_
