// What goes into the coordinator's machine and what comes out of it. Time and calls come in with
// the event; everything the outside is to do comes out as effects, performed in the order of the
// fields of Effects: durable before sent.
#ifndef TROUPE_COORDINATOR_EVENT_H_
#define TROUPE_COORDINATOR_EVENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "coordinator/catalog.h"
#include "coordinator/planner.h"
#include "troupe/v1/checkpoint.pb.h"
#include "troupe/v1/service.pb.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

struct PreparedResume;

// One stream of a worker; never 0, never reused within a coordinator's life.
using SessionId = uint64_t;
// One unanswered API call; likewise.
using CallId = uint64_t;

struct WorkerSaid {
  SessionId session = 0;
  v1::WorkerMessage message;
};
struct SessionClosed {
  SessionId session = 0;
};
// Time has passed; sent at or after NextDeadline(state), when nothing else is waiting.
struct Tick {};

struct CreateJobCall {
  CallId call = 0;
  v1::CreateJobRequest request;
  // Of the request's job, its checkpoint folder filled in; null: the machine prepares it itself.
  std::shared_ptr<const PreparedJob> prepared;
};
// Answered once the job is CANCELLED (or has ended otherwise) and that is durable.
struct CancelJobCall {
  CallId call = 0;
  v1::CancelJobRequest request;
};
// Answered once the job is gone.
struct DeleteJobCall {
  CallId call = 0;
  v1::DeleteJobRequest request;
};
struct ResumeJobCall {
  CallId call = 0;
  v1::ResumeJobRequest request;
  // Of the job as somebody saw it (coordinator/resume.h); null: the machine prepares it itself.
  std::shared_ptr<const PreparedResume> prepared;
};
// Answered once the commit is durable or the attempt failed.
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
  std::shared_ptr<const PreparedJob> prepared;  // of the request's job; null: likewise
};
// Answered by LogChunks.
struct ReadLogsCall {
  CallId call = 0;
  v1::ReadJobLogsRequest request;
};
// Answered once every rank of the newest group has told its steps, or one cannot.
struct TraceJobCall {
  CallId call = 0;
  v1::TraceJobRequest request;
};
// The caller went away or its deadline passed; what it asked for stands.
struct CallAbandoned {
  CallId call = 0;
};

struct Event {
  MonotonicTime now;
  int64_t wall_ns = 0;  // for records only
  std::variant<Tick, WorkerSaid, SessionClosed, CreateJobCall, CancelJobCall, DeleteJobCall,
               ResumeJobCall, CreateCheckpointCall, PinCheckpointCall, LiftQuarantineCall,
               RebuildJobCall, ReadLogsCall, TraceJobCall, CallAbandoned>
      what;
};

struct ToWorker {
  SessionId session = 0;
  v1::CoordinatorMessage
      message;              // leader epoch set; StartRanks without group_key, which the shell draws
  bool then_close = false;  // end the stream after it
};

struct Reply {
  CallId call = 0;
  Status status;
  std::variant<std::monostate, v1::Job, v1::CheckpointRecord, v1::TraceJobResponse> value;
};

// What watchers of `job` (an id) get.
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

// Facts for the metrics; losing one loses nothing else.
struct StepMeasured {
  std::string job;
  v1::StepEvent step;
  double model_flops = 0;
  double peak_flops = 0;  // peak × step seconds of all ranks; 0: a device's peak is unknown
};
struct RankMeasured {
  std::string job;
  v1::StepReport report;
};
struct CheckpointMeasured {
  v1::CheckpointRecord record;        // COMMITTED, ABORTED or QUARANTINED
  double stall_seconds = 0;           // of the slowest rank
  std::map<std::string, int> writes;  // shards, by the method by which they were written
};
struct CheckpointSkipped {
  std::string job;
};
enum class CheckpointFound { kWhole, kDamaged, kUnreadable };
struct CheckpointVerifiedMeasured {
  std::string job;
  CheckpointFound found = CheckpointFound::kUnreadable;
};
// A worker said what it had no right to say.
struct MessageDenied {
  std::string kind;  // "checkpoint_verified"
};
struct RestartMeasured {
  std::string job;
};
using Measurement = std::variant<StepMeasured, RankMeasured, CheckpointMeasured, CheckpointSkipped,
                                 CheckpointVerifiedMeasured, MessageDenied, RestartMeasured>;

struct Effects {
  std::vector<std::string_view> failpoints_before;  // hit first (base/failpoint.h)
  CatalogBatch writes;  // one atomic, synced batch; nothing below happens before it is durable
  std::vector<std::string_view> failpoints_after;
  std::vector<ToWorker> messages;
  std::vector<Reply> replies;
  std::vector<JobUpdate> updates;
  std::vector<LogChunk> logs;
  std::vector<Measurement> measurements;
  std::vector<std::string> forgotten_jobs;  // their metrics go, after the measurements
  std::vector<std::string> notes;           // for the log: what was refused, of whom and why
};

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_EVENT_H_
