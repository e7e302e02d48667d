// One job: its record, its queue of intents and its newest group of ranks, and the beginning and
// end of its life. The rest of its life is in group.h (start, tickets, adoption), progress.h (step
// reports), attempts.h (checkpoints) and recovery.h (failures). All pure.
//
// Invariants: every message to a worker follows from what is already in the turn's writes or in the
// catalog; the group epoch only rises; attempts are numbered from 1 and never reused; a job that
// has ended has no group, and a FAILED one has exactly one cause.
#ifndef TROUPE_COORDINATOR_JOB_H_
#define TROUPE_COORDINATOR_JOB_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "coordinator/fleet.h"
#include "coordinator/turn.h"
#include "troupe/v1/catalog.pb.h"
#include "troupe/v1/receipt.pb.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

enum class GroupPhase {
  kAdopting,  // the coordinator restarted: waits for every worker's Hello to hold the ranks
  kStarting,  // StartRanks sent: waits for addresses
  kBooked,    // AddressBook sent: waits for ranks to be ready
  kRunning,   // tickets granted
  kSettling,  // failed, ranks told to stop: waits for the primary cause
};

struct RankState {
  int64_t pid = 0;
  std::string address;       // empty until RankAddress
  std::string folder_token;  // what its worker has put into checkpoint.folder
  bool ready = false;
  bool held = false;  // kAdopting: confirmed by its worker's Hello
  int64_t reported_step = 0;
  int64_t ready_step = 0;  // what RankReady said is applied
  v1::CoreSet cores;       // that it runs on; empty: not told
  // The attempt that it wrote in the background at its last report; 0: none. Absent: nothing was
  // heard since the coordinator's restart, it may write any.
  std::optional<int64_t> writing_attempt = 0;
};

// The ranks write their states onto their workers, because the job's end could not be saved.
struct ImageTaking {
  int64_t step = 0;
  MonotonicTime deadline;
  std::map<int32_t, v1::ImageSaved> saved;  // by rank
};

struct Group {
  uint64_t epoch = 0;
  GroupPhase phase = GroupPhase::kStarting;
  std::vector<RankState> ranks;  // by rank; placement: Job::plan.ranks
  MonotonicTime deadline;        // of every phase but kRunning
  Duration start_limit{};        // from StartRanks until every rank is ready
  int64_t ticket_begin = 0;      // last step applied when the newest ticket was granted
  int64_t ticket_end = 0;
  MonotonicTime ticket_time;
  MonotonicTime last_progress;             // kRunning: a report, a vote or the start
  double peak_flops = 0;                   // of all ranks' devices together; 0: one is unknown
  bool first_report = true;                // none arrived yet in this epoch
  int steps_seen = 0;                      // reports of rank 0 in this epoch
  std::deque<double> recent_step_seconds;  // of the newest of them but the first
  // Identity of checkpoint.folder, as rank 0 states it; the job's once all have proved to share it.
  std::string folder_id;
  // What ranks said of the hang that ends the epoch, by rank.
  std::map<int32_t, v1::RankFlight> flights;
  // The ranks have stopped to be saved and that failed: when it is tried again.
  std::optional<MonotonicTime> save_again_time;
  int failed_saves = 0;
  std::optional<MonotonicTime> unsaved_since;  // when the first of them failed
  std::string save_failure;                    // why the last of them did
  int64_t hung_save = 0;  // the newest of them that ended because ranks did not answer
  std::set<int32_t> hung_ranks;  // that have not answered it yet
  std::optional<ImageTaking> image_taking;
  // Paths of images, and their workers, of a try that was given up: nothing goes on from them.
  std::map<std::string, std::string> left_images;
  v1::Failure failure;  // kSettling: of the secondary failure
};

// An intent that is recorded and not settled.
struct Attempt {
  v1::CheckpointRecord record;  // WRITING; step 0 until known
  bool asked = false;           // for a step that the ranks choose, not a due one
  bool begun = false;           // a rank is known to take part
  bool inherited = false;       // of a former leader: what ranks did with it may be on its way
  MonotonicTime begun_time;
  MonotonicTime asked_time;                // of one that is asked for
  std::map<int32_t, v1::ShardDone> votes;  // by rank
  std::vector<CallId> callers;
};

// A commit that a worker was asked to read back from the disk, and that is not known to be whole.
struct Verification {
  WorkerLife asked;
  SessionId session = 0;    // the stream that it was asked on: not twice on one
  bool unreadable = false;  // the answer was neither; asked again after the next commit
};

// Checkpoints since the newest commit of which a worker could not write its part.
struct FailedWrites {
  std::map<std::string, int> counts;  // by worker
  bool moved = false;  // the job has left a worker for it since its newest commit
};

// A second reading of a commit that is doubted (doubts.h).
struct DoubtReading {
  std::set<std::string> asked;  // workers, the present one among them
  WorkerLife reader;            // whose answer is awaited; without a name: nobody was asked yet
  SessionId session = 0;        // the stream that it was asked on
  MonotonicTime look;           // when it is next looked at
  MonotonicTime deadline;       // when another one is asked
};

struct Job {
  v1::JobRecord record;
  v1::JobSpec spec;  // as submitted, with what ResumeJob merged into it
  v1::Plan plan;     // of the running layout, ranks placed as in the newest group
  // While the running layout is smaller than the submitted one (coordinator/growth.h).
  std::optional<v1::SmallerLayout> smaller;
  v1::GroupRecord last_group;
  v1::JobImages images;    // of its ranks, where they are newer than every commit; else empty
  v1::ReceiptTally tally;  // of reports so far; in the catalog with those that are durable
  std::map<int64_t, v1::CheckpointRecord> checkpoints;  // settled, by attempt
  std::map<int64_t, Attempt> attempts;                  // of the current epoch, by attempt
  std::map<int64_t, Verification> verifications;        // under way, by attempt
  std::map<int64_t, WorkerLife> deletions;              // asked of whom, by attempt
  std::map<int64_t, DoubtReading> doubt_readings;       // under way, by attempt
  std::optional<MonotonicTime> checkpoint_due;          // by checkpoint.interval_seconds
  std::optional<Group> group;
  FailedWrites failed_writes;
  int64_t delayed_recoveries = 0;  // from faults of Charged::kDelayed, since the highest step rose
  std::vector<v1::StepEvent> unflushed;           // reports of rank 0 that are not durable yet
  MonotonicTime flush_time;                       // when they shall be; valid if there are any
  int64_t durable_step = 0;                       // of the current epoch's reports
  std::deque<double> step_seconds;                // of the newest steps, for the median
  int waiting_free_count = 0;                     // of the devices that waiting_for tells of
  std::string waiting_for;                        // the capacity it waits for
  std::optional<MonotonicTime> place_not_before;  // backoff: not placed before then
  // Until then devices under suspicion are not taken while its former ranks still hold others.
  std::optional<MonotonicTime> choose_time;
  std::optional<MonotonicTime> shrink_time;  // from then on it may be placed on a smaller layout
  bool may_shrink = false;
  std::optional<MonotonicTime>
      grow_time;  // the devices of the submitted layout suffice: when it grows
  std::vector<CallId> cancel_callers;
  // While it is being deleted: when what is left of it is asked for again.
  std::optional<MonotonicTime> delete_again_time;
  std::optional<MonotonicTime> skip_event_time;  // of the last event about a skipped step
  int64_t skipped_since = 0;                     // steps skipped since then

  const std::string& id() const { return record.id(); }
  int64_t steps() const { return spec.training().steps(); }
  bool has_folder() const { return !spec.checkpoint().folder().empty(); }
};

// "jobs/x" or "x" → "x".
std::string JobId(const std::string& name);

// NOT_FOUND naming the request's `field`.
Status NoSuchJob(const char* field, const std::string& name);

bool HasEnded(v1::JobState state);
inline bool HasEnded(const Job& job) { return HasEnded(job.record.state()); }
// It waits for devices.
bool IsQueued(const Job& job);

// A new QUEUED job, recorded in the turn's writes. REQUIRES: `spec` is completed and `plan` made
// for it.
Job CreateJob(v1::JobSpec spec, v1::Plan plan, uint64_t sequence, Turn& turn);

// The job as a restarted coordinator finds it.
Job RecoverJob(const v1::JobRecord& record, const v1::JobSpec& spec, const v1::Plan& plan,
               const v1::GroupRecord& group,
               const std::map<int64_t, v1::CheckpointRecord>& checkpoints, const TimeLimits& limits,
               MonotonicTime now);

// Adds an event to the job's stored events and tells the watchers. The record goes into the writes
// too.
void RecordEvent(Job& job, const std::string& event, const std::string& message, Turn& turn);

// Records the end and what led to it, stops the ranks, drops unsettled attempts, answers everybody
// who waits.
void EndJob(Job& job, v1::JobState state, const v1::Failure* failure, const std::string& message,
            Turn& turn);

// A plain cancel, or one after a checkpoint (see CancelJob in interface.md); the reply comes now or
// when it is done.
void CancelJob(Job& job, CallId call, bool checkpoint, Turn& turn);

// The newest commit that may be restored; null if there is none.
const v1::CheckpointRecord* NewestCommit(const Job& job);
bool HasQuarantined(const Job& job);

// Sends `message` to each worker that has a rank of the group, once.
void SendToGroup(const Job& job, const v1::CoordinatorMessage& message, Turn& turn);

// Answers `call` with the job as it is.
void ReplyWithJob(const Job& job, CallId call, Turn& turn);
void ReplyWithError(CallId call, Status status, Turn& turn);

// Does what is due by now; NextJobDeadline says when that is.
void OnJobTime(Job& job, Turn& turn);
std::optional<MonotonicTime> NextJobDeadline(const Job& job, const CoordinatorOptions& options);

// RUNNING with an open checkpoint shows as CHECKPOINTING, a group that settles its failure as
// RECOVERING.
v1::JobState ShownState(const Job& job);
// "RUNNING"
std::string StateName(v1::JobState state);

// What the API shows. `full`: with spec and plan.
v1::Job DescribeJob(const Job& job, bool full);
// Committed and quarantined ones, newest last.
std::vector<v1::CheckpointRecord> ListedCheckpoints(const Job& job);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_JOB_H_
