// One job: its record, its queue of intents and its newest group of ranks, with the questions that
// this data answers by itself. Nothing here has an effect.
//
// Invariants: every message to a worker follows from what is already in the turn's writes or in the
// catalog; the group epoch only rises; attempts are numbered from 1 and never reused; a job that
// has ended has no group, and a FAILED one has exactly one cause.
#ifndef TROUPE_COORDINATOR_STATE_JOB_STATE_H_
#define TROUPE_COORDINATOR_STATE_JOB_STATE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "coordinator/state/event.h"
#include "coordinator/state/fleet.h"
#include "plan/job/job_rules.h"
#include "troupe/v1/catalog.pb.h"
#include "troupe/v1/data.pb.h"
#include "troupe/v1/receipt.pb.h"
#include "troupe/v1/service.pb.h"

namespace troupe {

enum class GroupPhase {
  kAdopting,  // the coordinator restarted: waits until every worker's Hello confirms its ranks
  kStarting,  // StartRanks sent: waits for addresses
  kBooked,    // AddressBook sent: waits for ranks to be ready
  kRunning,   // tickets granted
  kDraining,  // failed, ranks asked to stop: waits for the primary cause
};

struct RankState {
  int64_t pid = 0;
  std::optional<v1::RankDevice> device;  // in a slice of TPU chips; absent until RankDevice
  std::string address;                   // empty until RankAddress
  std::string folder_token;              // the token that its worker wrote to checkpoint.folder
  // When it last answered an attempt, by a vote or a failure; the earliest time: not since the
  // coordinator's start.
  MonotonicTime last_answer = MonotonicTime::min();
  bool ready = false;
  bool held = false;  // kAdopting: confirmed by its worker's Hello
  int64_t reported_step = 0;
  int64_t ready_step = 0;  // the applied step that RankReady reported
  v1::CoreSet cores;       // cores that the rank runs on; empty: not reported
  // The attempt that the rank was writing in the background at its last report; 0: none. Absent: no
  // report has arrived since the coordinator restarted, so it may be writing any attempt.
  std::optional<int64_t> writing_attempt = 0;
};

// The ranks are writing their states to their workers because the final checkpoint could not be
// saved.
struct ImageTaking {
  int64_t step = 0;
  MonotonicTime deadline;
  std::map<int32_t, v1::ImageSaved> saved;  // by rank
  // The reason for which a rank could not write its image while others hung in the save; empty:
  // none has failed.
  std::string failure;
};

struct Group {
  uint64_t epoch = 0;
  GroupPhase phase = GroupPhase::kStarting;
  std::vector<RankState> ranks;  // by rank; placement: Job::plan.ranks
  MonotonicTime deadline;        // the present phase's; unused in kRunning
  Duration start_limit{};        // from StartRanks until every rank is ready
  int64_t ticket_begin = 0;      // last step applied when the newest ticket was granted
  int64_t ticket_end = 0;
  MonotonicTime ticket_time;
  MonotonicTime last_progress;  // kRunning: time of the last report, vote or start
  double peak_flops = 0;        // sum over all ranks' devices; 0: unknown for at least one
  bool first_report = true;     // none has arrived in this epoch yet
  int steps_seen = 0;           // number of reports of rank 0 in this epoch
  std::deque<double> recent_step_seconds;  // durations of the newest of them, without the first
  // Identity of checkpoint.folder as rank 0 reports it; it becomes the job's once all ranks have
  // proved that they share the folder.
  std::string folder_id;
  // Identity of the data as rank 0 reports it; it becomes the job's, if it has none, once all ranks
  // have found the same.
  std::optional<v1::DataIdentity> data;
  // The ranks' flight reports on the hang that ends the epoch, by rank.
  std::map<int32_t, v1::RankFlight> flights;
  // Set when the ranks have stopped for the final save and it failed: the time of the next try.
  std::optional<MonotonicTime> save_again_time;
  int failed_saves = 0;
  std::optional<MonotonicTime> unsaved_since;  // when the first of these saves failed
  std::string save_failure;                    // the error of the last of them
  int64_t hung_save = 0;         // the newest of them that ended because ranks did not answer
  std::set<int32_t> hung_ranks;  // ranks that have not answered hung_save yet
  std::optional<ImageTaking> image_taking;
  // Images of an abandoned try, as path → worker; no job is restored from them.
  std::map<std::string, std::string> left_images;
  // When the job last considered to leave workers that drain, one of them ended too soon for that.
  bool lacks_time_to_move = false;
  std::string stay;     // the newest event about why it does not leave workers that drain
  v1::Failure failure;  // kDraining: the secondary failure
  std::set<std::string> link_suspects;  // kDraining: workers whose broken link may be its cause
};

// A recorded intent that is not finalised.
struct Attempt {
  v1::CheckpointRecord record;  // WRITING; step 0 until known
  bool asked = false;           // for a step that the ranks choose, not a due one
  bool begun = false;           // a rank is known to take part
  bool inherited = false;       // from a former leader: ranks may still be acting on it
  MonotonicTime begun_time;
  MonotonicTime asked_time;                // when the ranks were asked, if `asked`
  std::map<int32_t, v1::ShardDone> votes;  // by rank
  std::vector<CallId> callers;
};

// A commit that a worker was asked to read back from disk, and that is not yet known to be whole.
struct Verification {
  WorkerLife asked;
  SessionId session = 0;  // the stream it was asked on; never asked twice on one stream
  // the answer was neither whole nor damaged; asked again after the next commit
  bool unreadable = false;
};

// Counts the checkpoints since the newest commit for which a worker could not write its part.
struct FailedWrites {
  std::map<std::string, int> counts;  // by worker
  bool folder_is_full = false;        // one of them failed because the folder had no room
  bool moved = false;  // the job has left a worker because of this since its newest commit

  bool any() const { return folder_is_full || !counts.empty(); }
};

// The second reading of a doubted commit (doubts.h).
struct DoubtReading {
  std::set<std::string> asked;  // workers asked so far, including the present reader
  WorkerLife reader;            // whose answer is awaited; without a name: nobody was asked yet
  SessionId session = 0;        // the stream it was asked on
  MonotonicTime look;           // when it is next checked
  MonotonicTime deadline;       // when another worker is asked
};

// The requests to remove a checkpoint's directory that are not answered yet.
struct DeletionRequests {
  std::set<WorkerLife> asked;  // the workers asked so far
  // The newest request since no rank can write there any more; 0: there was none.
  SessionId session = 0;
  MonotonicTime time;
};

// A call that waits until the job is cancelled.
struct CancelCaller {
  CallId call = 0;
  bool needs_commit = false;  // it gets an error if steps are lost
};

struct StepLoss {
  int64_t step = 0;
  double loss = 0;
};
// Returns the loss of a step; nothing if the step has no target.
std::optional<StepLoss> StepLossOf(const v1::StepEvent& step);

struct Job {
  v1::JobRecord record;
  v1::JobSpec spec;  // as submitted, merged with the overrides of ResumeJob
  v1::Plan plan;     // the running layout's, ranks placed as in the newest group
  // Set while the running layout is smaller than the submitted one (coordinator/job/growth.h).
  std::optional<v1::SmallerLayout> smaller;
  v1::GroupRecord last_group;
  std::optional<v1::DataIdentity> data;  // the data that it began with; absent: not known
  v1::JobImages images;    // images of its ranks, if newer than every commit; else empty
  v1::ReceiptTally tally;  // all reports so far; in the catalog: those that are durable
  std::map<int64_t, v1::CheckpointRecord> checkpoints;  // finalised, by attempt
  std::map<int64_t, Attempt> attempts;                  // those of the current epoch, by attempt
  std::map<int64_t, Verification> verifications;        // in progress, by attempt
  std::map<int64_t, DeletionRequests> deletions;        // in progress, by attempt
  std::map<int64_t, DoubtReading> doubt_readings;       // in progress, by attempt
  std::optional<MonotonicTime> checkpoint_due;          // by checkpoint.interval_seconds
  std::optional<Group> group;
  FailedWrites failed_writes;
  int64_t delayed_recoveries = 0;  // from faults of Charged::kDelayed, since the highest step rose
  std::vector<v1::StepEvent> unflushed;  // reports of rank 0 that are not durable yet
  MonotonicTime flush_time;              // when they have to be durable; valid if there are any
  int64_t durable_step = 0;              // last durable step of the current epoch's reports
  std::optional<StepLoss> last_loss;     // reported or, at the start, stored last
  std::deque<double> step_seconds;       // durations of the newest steps, for the median
  int waiting_free_count = 0;            // number of free devices stated in waiting_for
  std::string waiting_for;               // the capacity that the job waits for
  std::optional<MonotonicTime> place_not_before;  // backoff: not placed before then
  // Until then suspected devices are not used while the job's former ranks still hold other
  // devices.
  std::optional<MonotonicTime> choose_time;
  // While the job waits in order to be restored from images: when their workers are next looked
  // for, and since when one of them is missing.
  std::optional<MonotonicTime> image_look_time;
  std::optional<MonotonicTime> image_missing_since;
  std::optional<MonotonicTime> shrink_time;  // from then on it may be placed on a smaller layout
  bool may_shrink = false;
  std::optional<MonotonicTime>
      grow_time;  // when the job grows, once the submitted layout's devices suffice
  std::vector<CancelCaller> cancel_callers;
  // When the removal of files is requested again: while the job is being deleted, and while some
  // could not be requested yet (SendDeletions).
  std::optional<MonotonicTime> delete_again_time;
  std::optional<MonotonicTime> skip_event_time;  // time of the last event about a skipped step
  int64_t skipped_since = 0;                     // steps skipped since then

  const std::string& id() const { return record.id(); }
  int64_t steps() const { return spec.training().steps(); }
  bool has_folder() const { return HasCheckpointFolder(spec); }
};

// NOT_FOUND with one message for all requests. Its violation names the request's `field`.
Status NoSuchJob(const char* field, const std::string& name);

bool HasEnded(v1::JobState state);
inline bool HasEnded(const Job& job) { return HasEnded(job.record.state()); }

// Whether the job waits for devices.
bool IsQueued(const Job& job);

// The newest commit that may be restored; null if there is none.
const v1::CheckpointRecord* NewestCommit(const Job& job);

bool HasQuarantined(const Job& job);

// Whether the job leaves workers that are draining, for new ones on which it has not run yet.
bool IsMoving(const Job& job);

// The state that users see: RUNNING with an open checkpoint is shown as CHECKPOINTING, a group in
// kDraining as RECOVERING.
v1::JobState ShownState(const Job& job);

// For example "RUNNING".
std::string StateName(v1::JobState state);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_STATE_JOB_STATE_H_
