// The inputs (events) and outputs (effects) of the coordinator's state machine. Time and calls
// arrive with the event. All outside actions are effects, performed in the order of the fields of
// Effects, except that notes are logged before messages are sent. Nothing is sent before the writes
// are durable.
#ifndef TROUPE_COORDINATOR_STATE_EVENT_H_
#define TROUPE_COORDINATOR_STATE_EVENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "coordinator/state/catalog.h"
#include "coordinator/state/planner.h"
#include "troupe/v1/checkpoint.pb.h"
#include "troupe/v1/service.pb.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

class Namespaces;
struct PreparedResume;

// One stream of a worker; never 0, never reused within a coordinator's life.
using SessionId = uint64_t;
// One unanswered API call; never 0, never reused within a coordinator's life.
using CallId = uint64_t;

struct WorkerReported {
  SessionId session = 0;
  v1::WorkerMessage message;
};
struct SessionClosed {
  SessionId session = 0;
};
// Time has passed. Sent at or after NextDeadline(state), when no other event is queued.
struct Tick {};

struct CreateJobCall {
  CallId call = 0;
  v1::CreateJobRequest request;
  // The request's job, prepared with its checkpoint folder filled in; null: the machine prepares
  // it.
  std::shared_ptr<const PreparedJob> prepared;
  std::string creator;  // the caller's identity; empty: not known
};
// Answered once it is durable that the job is CANCELLED or has ended otherwise.
struct CancelJobCall {
  CallId call = 0;
  v1::CancelJobRequest request;
};
// Answered once the job is deleted, or why it is not, for example because its files were not
// removed in time.
struct DeleteJobCall {
  CallId call = 0;
  v1::DeleteJobRequest request;
};
struct ResumeJobCall {
  CallId call = 0;
  v1::ResumeJobRequest request;
  // Prepared for the job as seen before this event (coordinator/job/resume.h); null: the machine
  // prepares it.
  std::shared_ptr<const PreparedResume> prepared;
};
// Answered once the commit is durable or the attempt has failed.
struct CreateCheckpointCall {
  CallId call = 0;
  v1::CreateCheckpointRequest request;
};
struct PinCheckpointCall {
  CallId call = 0;
  v1::PinCheckpointRequest request;
};
struct LiftQuarantineCall {
  CallId call = 0;
  v1::LiftQuarantineRequest request;
};
struct RebuildJobCall {
  CallId call = 0;
  v1::RebuildJobRequest request;
  std::shared_ptr<const PreparedJob> prepared;  // the request's job; null: the machine prepares it
  std::string creator;                          // the caller's identity; empty: not known
};
// Answered by LogChunks.
struct ReadLogsCall {
  CallId call = 0;
  v1::ReadJobLogsRequest request;
};
// Answered once every rank of the newest group has reported its steps, or one cannot.
struct TraceJobCall {
  CallId call = 0;
  v1::TraceJobRequest request;
};
struct DrainWorkerCall {
  CallId call = 0;
  v1::DrainWorkerRequest request;
};
struct UndrainWorkerCall {
  CallId call = 0;
  v1::UndrainWorkerRequest request;
};
// The file of namespaces has changed.
struct NamespacesChanged {
  std::shared_ptr<const Namespaces> namespaces;
};
// The caller went away or its deadline passed; the request itself remains in effect.
struct CallAbandoned {
  CallId call = 0;
};

struct Event {
  MonotonicTime now;
  int64_t wall_ns = 0;  // for records only
  std::variant<Tick, WorkerReported, SessionClosed, CreateJobCall, CancelJobCall, DeleteJobCall,
               ResumeJobCall, CreateCheckpointCall, PinCheckpointCall, LiftQuarantineCall,
               RebuildJobCall, ReadLogsCall, TraceJobCall, DrainWorkerCall, UndrainWorkerCall,
               NamespacesChanged, CallAbandoned>
      what;
};

struct ToWorker {
  SessionId session = 0;
  v1::CoordinatorMessage
      message;              // leader epoch set; StartRanks lacks group_key, which the shell draws
  bool then_close = false;  // end the stream after it
};

struct Reply {
  CallId call = 0;
  Status status;
  std::variant<std::monostate, v1::Job, v1::CheckpointRecord, v1::TraceJobResponse,
               v1::WorkerStatus>
      value;
};

// An update for the watchers of `job` (an id).
struct JobUpdate {
  std::string job;
  v1::WatchJobResponse update;
};

struct LogChunk {
  CallId call = 0;
  Status status;
  std::vector<std::string> lines;
  bool last = false;
};

// Facts for the metrics; losing one affects nothing else.
struct StepMeasured {
  std::string job;
  v1::StepEvent step;
  double model_flops = 0;
  double recomputed_flops = 0;  // by activation recomputation, in addition to model_flops
  double peak_flops = 0;  // peak × step seconds, summed over ranks; 0: a device's peak is unknown
  bool repeated = false;  // an earlier group had applied the step
};
struct RankMeasured {
  std::string job;
  v1::StepReport report;
};
struct CheckpointMeasured {
  v1::CheckpointRecord record;        // COMMITTED, ABORTED or QUARANTINED
  double stall_seconds = 0;           // stall of the slowest rank
  std::map<std::string, int> writes;  // number of shards by write method
};
struct CheckpointSkipped {
  std::string job;
};
enum class CheckpointFound { kWhole, kDamaged, kUnreadable };
struct CheckpointVerifiedMeasured {
  std::string job;
  CheckpointFound found = CheckpointFound::kUnreadable;
};
// A worker sent a message that it had no right to send.
struct MessageDenied {
  std::string kind;  // for example "checkpoint_verified"
};
struct RestartMeasured {
  std::string job;
};
// The job got devices, and its ranks start; no update to its watchers shows this.
struct StartMeasured {
  std::string job;
};
using Measurement =
    std::variant<StepMeasured, RankMeasured, CheckpointMeasured, CheckpointSkipped,
                 CheckpointVerifiedMeasured, MessageDenied, RestartMeasured, StartMeasured>;

// A rank found that a path of its job leaves its root. For the audit log.
struct RefusedPath {
  std::string worker;  // has the rank
  std::string job;     // id
  std::string reason;
};

struct Effects {
  std::vector<std::string_view> failpoints_before;  // hit before the write (base/failpoint.h)
  CatalogBatch writes;  // one atomic, synced batch; durable before any effect below
  std::vector<std::string_view> failpoints_after;
  std::vector<RefusedPath> refused_paths;
  std::vector<ToWorker> messages;
  std::vector<Reply> replies;
  std::vector<JobUpdate> updates;
  std::vector<LogChunk> logs;
  std::vector<Measurement> measurements;
  std::vector<std::string> forgotten_jobs;  // their metrics are dropped after the measurements
  std::vector<std::string> notes;           // for the log: what was refused, from whom and why
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_STATE_EVENT_H_
