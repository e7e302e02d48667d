// The worker daemon as one pure state machine: its stream to the coordinator, its rank processes,
// and the data it keeps until the coordinator has them. It uses no clock, thread, socket or
// process; the shell (worker/daemon.h) and simulations drive the same Step.
//
// Invariants:
// - A message with a lower leader epoch than the highest seen, or a lower group epoch than the
//   job's highest, has no effect.
// - A device has at most one rank. A rank of a newer group epoch starts only after the process of
//   the older one has stopped.
// - Rank 0's step reports, votes and manifests are kept until acknowledged and resent on every new
//   stream, as are each rank's reports of its start and failure. Receivers treat duplicates as one.
// - A rank told to stop is killed once its limit has passed. No other action or omission of a
//   coordinator kills a rank: without a coordinator, ranks run to the end of their tickets and
//   check the tickets' lifetimes themselves.
// - No rank begins and no process starts on a condemned device.
// - Each rank runs on the cores that DivideCores gives it among all ranks known on the host.
#ifndef TROUPE_WORKER_SESSION_SESSION_H_
#define TROUPE_WORKER_SESSION_SESSION_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/time_limits.h"
#include "troupe/v1/rank.pb.h"
#include "troupe/v1/worker.pb.h"
#include "worker/session/core_division.h"

namespace troupe::session {

inline constexpr int kProtocolVersion = 1;

struct Config {
  // protocol_version … metrics_address and the images of former lives; `held` and leader_epoch_seen
  // are empty.
  v1::Hello identity;
  std::string log_directory;       // folder of ranks' logs, see RankLogPath
  std::string image_directory;     // folder of images of ranks' states
  std::string cluster;             // the coordinator's address: distinguishes clusters on one host
  std::vector<Core> host_cores;    // cores of the whole host; empty: ranks are not bound to cores
  std::vector<int> allowed_cores;  // hardware threads that this daemon may use, ascending
};

// The daemon's reports to the coordinator about one rank that it still holds, resent on a new
// stream.
struct RankRecord {
  int device = 0;
  std::optional<v1::WorkerMessage> address;
  std::optional<v1::WorkerMessage> ready;
  std::optional<v1::WorkerMessage> failed;
  v1::CoreSet cores;
};

// The ranks of one job on this worker in one group epoch.
struct Group {
  uint64_t epoch = 0;
  std::map<int, RankRecord> ranks;
  int64_t step = 0;  // highest step applied by any rank here
  int64_t ticket_end_step = 0;
  std::map<int64_t, v1::WorkerMessage> reports;  // rank 0's, by step
  // If many reports wait: those up to this step were sent on this stream; the others follow once
  // they are durable.
  std::optional<int64_t> said_step;
  std::map<std::pair<int64_t, int>, v1::WorkerMessage> votes;  // by (attempt, rank): done or failed
  std::map<int64_t, v1::WorkerMessage> manifests;              // by attempt
  int threads = 1;                                             // threads of each rank
  std::vector<int> ranks_on_host;  // ranks of the job, including those of other daemons
  uint64_t begin_ns = 0;           // when the ranks were placed here, on the host's monotonic clock
};

enum class ProcessState {
  kNone,      // not running; started again at `start_at`
  kStarting,  // has not reported that it is idle
  kIdle,
  kBusy,      // has a rank
  kStopping,  // told to stop; killed at `kill_at`
  kKilled,    // its end is awaited
};

struct Device {
  ProcessState process = ProcessState::kNone;
  MonotonicTime start_at;
  MonotonicTime kill_at;
  int failed_starts = 0;  // in a row
  std::string job;        // job of its rank; empty: no rank
  uint64_t group_epoch = 0;
  int rank = -1;
  std::optional<v1::BeginRank> next;  // begun as soon as the process is idle
  std::string fault;                  // why its process is being killed, if the device caused it
  std::string condemned;              // why nothing may run on it; empty: not condemned
};

enum class Link {
  kDown,     // dialled again at `dial_at`
  kDialled,  // Hello sent, Welcome awaited
  kUp,
};

struct State {
  Config config;
  Link link = Link::kDown;
  uint64_t stream = 0;  // the stream in use; each dial has a new number
  MonotonicTime dial_at;
  int failed_dials = 0;
  std::string noted;  // the last logged reason without a stream, so that each is logged once
  uint64_t leader_epoch = 0;
  TimeLimits limits = MakeTimeLimits(3);
  MonotonicTime heard_at;
  MonotonicTime heartbeat_at;
  std::vector<Device> devices;
  std::map<std::string, Group> groups;            // by job
  std::map<std::string, uint64_t> highest_epoch;  // by job, in this life of the daemon
  std::deque<v1::WorkerMessage> unsent;           // ends of ranks that occurred without a stream
  uint64_t burn_in = 0;                           // number of the request in progress; 0: none
  std::map<std::string, v1::HeldImage> images;    // images on this host, by path
  std::vector<v1::CoreClaims> other_claims;       // claims of the host's other daemons
  v1::CoreClaims published_claims;
  // Why the daemons of the host cannot divide cores together in this life; ranks that begin report
  // it as a fall-back. Empty: they can.
  std::string core_table_fault;
  bool cores_stale = false;  // a rank has begun or ended since cores were divided
  bool ended = false;
};

// --- Events.
struct Tick {};
struct StreamMessage {
  uint64_t stream = 0;
  v1::CoordinatorMessage message;
};
struct StreamClosed {
  uint64_t stream = 0;
  std::string reason;
};
struct RankSaid {
  int device = 0;
  v1::RankReport report;  // idle or worker
};
struct RankExited {
  int device = 0;
  int exit_code = 0;
  int signal = 0;
  std::string last_operation;
  std::string message;  // the error, if the process was never started
};
// A fault of a device: its process must be replaced.
struct DeviceFault {
  int device = 0;
  bool condemned = false;  // no other process may use the device either
  std::string cause;       // "Xid 79 (GPU has fallen off the bus) on GPU-…"
};
struct CheckpointGone {
  v1::CheckpointDeleted deleted;
};
struct CheckpointReadBack {
  v1::CheckpointVerified verified;
};
struct BurnInEnded {
  v1::BurnInDone done;
};
// The current claims of the other daemons of this host.
struct OthersClaim {
  std::vector<v1::CoreClaims> claims;
};
// The daemons of this host cannot learn of each other's ranks.
struct CoreTableFault {
  std::string reason;
};
struct Event {
  MonotonicTime now;
  std::variant<Tick, StreamMessage, StreamClosed, RankSaid, RankExited, DeviceFault, CheckpointGone,
               CheckpointReadBack, BurnInEnded, OthersClaim, CoreTableFault>
      what;
};

// --- Effects, performed in order.
struct Dial {
  uint64_t stream = 0;
  v1::WorkerMessage hello;
};
struct HangUp {
  uint64_t stream = 0;
};
struct SendToCoordinator {
  v1::WorkerMessage message;
};
// The shell adds the memory usage and sends.
struct SendHeartbeat {
  uint64_t leader_epoch = 0;
};
struct StartProcess {
  int device = 0;
};
struct KillProcess {
  int device = 0;
  std::string reason;
};
struct SendToRank {
  int device = 0;
  v1::RankCommand command;
};
struct ReadRankLogs {
  v1::ReadLogs request;
};
// Asks for the trace that a rank which ended here left behind; answered also if there is none.
struct ReadRankTrace {
  v1::TraceRequest request;
  int rank = 0;
};
struct RemoveCheckpoint {
  v1::DeleteCheckpoint request;
};
struct RemoveImages {
  v1::DeleteImages request;
};
// Answered by CheckpointReadBack.
struct ReadCheckpointBack {
  v1::VerifyCheckpoint request;
};
// Answered by BurnInEnded; a burn-in in progress is stopped first.
struct BeginBurnIn {
  v1::BurnIn request;
};
struct StopBurnIn {};
// For the other daemons of this host; replaces the claims published before.
struct PublishClaims {
  v1::CoreClaims claims;
};
// A message for the log.
struct Note {
  std::string text;
};
struct EndDaemon {
  int exit_code = 0;
  std::string message;
};
using Effect =
    std::variant<Dial, HangUp, SendToCoordinator, SendHeartbeat, StartProcess, KillProcess,
                 SendToRank, ReadRankLogs, ReadRankTrace, RemoveCheckpoint, RemoveImages,
                 ReadCheckpointBack, BeginBurnIn, StopBurnIn, PublishClaims, Note, EndDaemon>;
using Effects = std::vector<Effect>;

// The first Tick starts everything: processes of all devices, and the first dial.
State MakeState(Config config, MonotonicTime now);

Effects Step(State& state, const Event& event);

// Returns when the next Tick is due.
MonotonicTime NextDeadline(const State& state);

// Returns "LOGS/JOB/rank-3.worker-0.log": the log of a rank while it ran on this worker. Workers
// may share the directory.
std::string RankLogPath(const Config& config, const std::string& job, int rank);

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_SESSION_H_
