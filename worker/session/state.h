// The state of the session machine (worker/session/session.h): the stream to the coordinator, the
// ranks of this daemon and their devices. Data only.
#ifndef TROUPE_WORKER_SESSION_STATE_H_
#define TROUPE_WORKER_SESSION_STATE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/time_limits.h"
#include "troupe/v1/rank.pb.h"
#include "troupe/v1/worker.pb.h"
#include "worker/session/core_division.h"

namespace troupe::session {

inline constexpr int kProtocolVersion = 2;

struct Config {
  // protocol_version … metrics_address and the images of earlier incarnations; `held` and
  // leader_epoch_seen are empty.
  v1::Hello identity;
  std::string log_directory;         // folder of ranks' logs, see RankLogPath
  std::string image_directory;       // folder of images of ranks' states
  std::string tuning_directory;      // folder of what ranks found by timing on these devices
  std::string executable_directory;  // folder of programs that compilers of devices made
  std::string cluster;             // the coordinator's address: distinguishes clusters on one host
  bool has_tls = true;             // the worker dials the coordinator with TLS
  std::vector<Core> host_cores;    // cores of the whole host; empty: ranks are not bound to cores
  std::vector<int> allowed_cores;  // hardware threads that this daemon may use, ascending
};

// The daemon's reports to the coordinator about one rank that it still holds, resent on a new
// stream.
struct RankRecord {
  int device = 0;
  std::optional<v1::WorkerMessage> slice_device;
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
  std::optional<int64_t> sent_step;
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
  kStopping,  // asked to stop; killed at `kill_at`
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
  std::string fault;                  // the reason for killing its process, if the device caused it
  std::string condemned;              // the reason why nothing may run on it; empty: not condemned
};

enum class Link {
  kDown,     // dialled again at `dial_at`
  kDialled,  // Hello sent, Welcome awaited
  kUp,
};

// The jobs of a daemon that drains move to other workers.
struct DrainState {
  std::string reason;
  MonotonicTime end;  // when the daemon ends, with the ranks that are left
};

struct State {
  Config config;
  Link link = Link::kDown;
  uint64_t stream = 0;  // the stream in use; each dial has a new number
  MonotonicTime dial_at;
  int failed_dials = 0;
  // The last logged reason without a stream, which is not logged again before `note_again_at`.
  std::string noted;
  MonotonicTime note_again_at;
  uint64_t leader_epoch = 0;
  TimeLimits limits = MakeTimeLimits(3);
  MonotonicTime heard_at;
  MonotonicTime heartbeat_at;
  std::vector<Device> devices;
  std::map<std::string, Group> groups;  // by job
  // The highest group epoch that a StartRanks or StopRanks named, by job. An entry is dropped when
  // the coordinator forgets the job. A new stream drops those of jobs without a rank here, because
  // an epoch is started on one stream only: its StartRanks is never resent.
  std::map<std::string, uint64_t> highest_epoch;
  std::deque<v1::WorkerMessage> unsent;         // ends of ranks that occurred without a stream
  uint64_t burn_in = 0;                         // number of the request in progress; 0: none
  std::map<std::string, v1::HeldImage> images;  // images on this host, by path
  std::vector<v1::CoreClaims> other_claims;     // claims of the host's other daemons
  v1::CoreClaims published_claims;
  // The reason for which the daemons of the host cannot divide cores together in this life; ranks
  // that begin report it as a fall-back. Empty: they can.
  std::string core_table_fault;
  bool cores_stale = false;         // a rank has begun or ended since cores were divided
  std::optional<DrainState> drain;  // the daemon also ends when it has no ranks left
  // The daemon was asked to stop and has sent a Goodbye; it ends once the coordinator has closed
  // the stream, and then at the latest.
  std::optional<MonotonicTime> leave_by;
  bool ended = false;
};

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_STATE_H_
