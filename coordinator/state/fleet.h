// The known workers, their sessions and the device leases. Pure: time is an argument.
//
// Invariants:
// - A worker name is bound to at most one session.
// - The incarnations of a name never decrease.
// - A device is leased to at most one rank. A lease ends only with the rank's confirmed death
//   (RankStopped, a Hello that no longer holds it, a newer life of the daemon), or once the absent
//   worker is forgotten, when every ticket that it may have held has expired.
#ifndef TROUPE_COORDINATOR_STATE_FLEET_H_
#define TROUPE_COORDINATOR_STATE_FLEET_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/time_limits.h"
#include "coordinator/state/blame.h"
#include "coordinator/state/catalog.h"
#include "coordinator/state/event.h"
#include "plan/layout/placement.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

// A worker name during one life of its daemon.
struct WorkerLife {
  std::string name;
  uint64_t incarnation = 0;
  auto operator<=>(const WorkerLife&) const = default;
};

// A worker's announcement that it ends (v1.Draining).
struct Drain {
  std::string reason;
  MonotonicTime end;  // when the worker ends
  int64_t end_wall_ns = 0;
};

struct Worker {
  std::string name;
  uint64_t incarnation = 0;
  SessionId session = 0;  // 0: no stream
  v1::Hello hello;        // the last accepted one, without `held`, `images` and `life_key`
  // Digest of the life_key that every stream of this life has to state. Empty: not known, because
  // the worker is known only from leases of an older coordinator.
  std::string life_key_digest;
  int64_t memory_bytes = 0;
  MonotonicTime last_message;   // or when its stream closed
  bool lost = false;            // its lease or reconnect grace has expired; it may come back
  int64_t denied_messages = 0;  // messages that it had no right to send in this session
  std::optional<Drain> drain;   // as announced in this session
};

using LeaseKey = std::pair<std::string, int32_t>;  // worker, device index

// An operator's order to drain a worker ends this long after the worker was forgotten.
inline constexpr std::chrono::nanoseconds kForgottenDrainLimit = std::chrono::hours(7 * 24);

struct Fleet {
  std::map<std::string, Worker> workers;
  std::map<SessionId, std::string> sessions;  // sessions with an accepted Hello
  std::map<LeaseKey, v1::LeaseRecord> leases;
  BlameBook blame;  // kept longer than the workers it is about
  // The workers that operators drain; kept longer than the workers.
  std::map<std::string, v1::DrainRecord> drains;
  uint64_t last_burn_in = 0;  // number of this leader's newest burn-in request
};

// The result of a Hello.
struct HelloOutcome {
  Status refused;                  // not OK: send Refused and end the stream
  bool retry = false;              // whether the refused worker may dial again
  bool new_life = false;           // the incarnation rose: nothing of the previous life is alive
  SessionId replaced_session = 0;  // older stream of the same incarnation, to be ended
};

// Binds `session` to the worker that sent `hello`, or refuses it:
// - INVALID_ARGUMENT (bad name, devices or incarnation) and FAILED_PRECONDITION (another protocol
//   version, a worker that has followed a later leader, an older life): permanent,
// - INVALID_ARGUMENT on a stream that already belongs to another worker,
// - ALREADY_EXISTS while an older life of the same name may still be alive, while another process
//   is connected as the very same life, or for that life with another life_key: retry.
HelloOutcome AcceptHello(const v1::Hello& hello, SessionId session, uint64_t leader_epoch,
                         const TimeLimits& limits, MonotonicTime now, Fleet* fleet);

// Returns the worker bound to `session`; null if there is none (the stream never sent a Hello, was
// replaced or has ended).
Worker* FindBySession(SessionId session, Fleet* fleet);
const Worker* FindWorker(const std::string& name, const Fleet& fleet);
inline WorkerLife LifeOf(const Worker& worker) { return {worker.name, worker.incarnation}; }

// Notes that the worker ends. REQUIRES: it has a session.
void NoteDraining(const v1::Draining& draining, MonotonicTime now, int64_t wall_ns, Worker* worker);

// Whether nothing more may be placed on the worker.
bool IsDraining(const Worker& worker, const Fleet& fleet);

// Whether any worker drains.
bool AnyDrains(const Fleet& fleet);

// Returns untrusted text in a form for the log: short, and on one line.
std::string Shortened(const std::string& text);

// Handles the end of a stream. Returns the worker's name; empty if no worker is bound to it.
std::string CloseSession(SessionId session, MonotonicTime now, Fleet* fleet);

// Marks workers beyond their limit as lost and returns their names; unbinds their sessions and
// returns them in `closed`. Drops workers absent for `forget_worker` together with their leases,
// and puts the deletions into `writes`.
std::vector<std::string> ExpireWorkers(const TimeLimits& limits, MonotonicTime now, Fleet* fleet,
                                       std::vector<SessionId>* closed, CatalogBatch* writes);

// Returns when ExpireWorkers next has work to do.
std::optional<MonotonicTime> NextExpiry(const TimeLimits& limits, const Fleet& fleet);

// Handles a report that nothing may run on a device of `worker`; returns false if it has no such
// device.
bool CondemnDevice(const v1::DeviceCondemned& message, Worker* worker);

// Returns the devices of workers that have a session and do not drain, except condemned ones;
// `free_only` also excludes leased ones.
ClusterView ListDevices(const Fleet& fleet, bool free_only);

// Returns the free devices and those that `job` holds.
ClusterView ListDevicesFor(const Fleet& fleet, const std::string& job);

// Returns whether a rank of `job`, of any group epoch, still holds a device of a worker with a
// session, so that its end will be reported.
bool HoldsDevices(const Fleet& fleet, const std::string& job);

// Leases the device of every rank of `plan` to (job, group_epoch), in memory and in `writes`.
// REQUIRES: none of them is leased.
void LeaseDevices(const v1::Plan& plan, const std::string& job, uint64_t group_epoch, Fleet* fleet,
                  CatalogBatch* writes);

// Ends the lease of (job, group_epoch, rank) on a device of `worker`; returns false if there is
// none.
bool ReleaseRank(const std::string& worker, const std::string& job, uint64_t group_epoch,
                 int32_t rank, Fleet* fleet, CatalogBatch* writes);

// Ends every lease on `worker` that its Hello does not confirm in `held`, and returns the ended
// leases.
std::vector<v1::LeaseRecord> ReleaseNotHeld(const std::string& worker, const v1::Hello& hello,
                                            Fleet* fleet, CatalogBatch* writes);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_STATE_FLEET_H_
