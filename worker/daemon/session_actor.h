// The worker daemon's root actor: the shell around the session machine (worker/session/session.h).
// It steps the machine with the events of its children and of the file tasks, performs the effects,
// and supervises:
//
//   - An end of a rank's actor that did not report the end of its process ends the rank: the
//     machine gets RankExited with the cause.
//   - The end of any other part ends this actor with its cause, and with it the daemon.
//
// A command for a rank whose mailbox is full ends that rank's process. If the link's mailbox is
// full, the stream counts as closed: the session dials again and resends what was not sent. A
// wanted burn-in is kept until its actor has room for it.
#ifndef TROUPE_WORKER_DAEMON_SESSION_ACTOR_H_
#define TROUPE_WORKER_DAEMON_SESSION_ACTOR_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "actor/actor.h"
#include "base/last_sign.h"
#include "troupe/v1/rank.pb.h"
#include "worker/daemon/session_files.h"
#include "worker/session/session.h"

namespace troupe {

// A rank's process with the actor that owns it.
struct StartedRank {
  std::unique_ptr<Actor> actor;
  pid_t pid = 0;
};

// Receives the running totals of the ranks' metrics.
class RankTotals {
 public:
  virtual ~RankTotals() = default;
  // A rank of `job` begins on `device`, or its process without a job yet (empty): the totals start
  // from 0.
  virtual void Restart(int device, const std::string& job) = 0;
  // Adds the increase since the last totals of `device`.
  virtual void Add(int device, const v1::RankMetrics& totals) = 0;
  // Called about once a second with the jobs that have a rank here. What is kept of other jobs may
  // be dropped some time after their end.
  virtual void KeepJobs(const std::set<std::string>& jobs, MonotonicTime now) = 0;
};

struct SessionActorOptions {
  session::Config config;
  std::string core_table;  // directory of the host's core table (CoreTable); empty: none
  // Passes a message to an actor of this actor's system. Thread-safe.
  std::function<Status(Address to, AnyMessage message)> send;
  // Makes the files of the session actor `session`, which they send SessionEvents to.
  std::function<std::unique_ptr<SessionFiles>(Address session)> open_files;
  std::unique_ptr<Actor> link;     // a CoordinatorLink
  std::unique_ptr<Actor> burn_in;  // a BurnInActor
  std::unique_ptr<Actor> devices;  // a DeviceActor; null: there is no device to watch
  std::function<StatusOr<StartedRank>(int device)> start_rank;
  std::function<int64_t(pid_t)> memory_bytes;  // memory that a process occupies
  RankTotals* totals = nullptr;                // outlives the actor
  LastSign* works = nullptr;  // touched with each message and at least once a second
  // Whether the coordinator has welcomed it and it neither drains nor leaves; may be null.
  std::atomic<bool>* has_session = nullptr;
  // The daemon is to end. This actor then ends too: with OK if the code is 0, else with the reason.
  std::function<void(int exit_code)> exit;
  // Mailboxes of the children.
  size_t link_capacity = 1024;
  size_t rank_capacity = 256;
  size_t burn_in_capacity = 16;
  size_t devices_capacity = 256;
};

// Capacity of this actor's own mailbox. Its senders have a bounded number of messages in flight,
// some hundreds for 64 devices; when it is full they keep their events (EventSender).
inline constexpr size_t kSessionCapacity = 1024;

class SessionActor : public Actor {
 public:
  virtual const session::State& state() const = 0;
};

std::unique_ptr<SessionActor> MakeSessionActor(SessionActorOptions options);

// The cause with which the session actor ends if its part `name` ended with `cause`.
Status PartEnded(std::string_view name, const Status& cause);

}  // namespace troupe

#endif  // TROUPE_WORKER_DAEMON_SESSION_ACTOR_H_
