// The workers the coordinator knows, their sessions, and who holds which device. Pure: time comes
// in as an argument.
//
// Invariants: a worker name is bound to at most one session; incarnations of a name never decrease;
// a device is leased to at most one rank, and a lease ends only with the rank's confirmed death
// (RankStopped, a Hello that no longer holds it, a newer life of the daemon) or once the absent
// worker is forgotten, when every ticket it may have held has ended.
#ifndef TROUPE_COORDINATOR_FLEET_H_
#define TROUPE_COORDINATOR_FLEET_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/time_limits.h"
#include "coordinator/blame.h"
#include "coordinator/catalog.h"
#include "coordinator/event.h"
#include "plan/placement.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

// A worker name in one life of its daemon.
struct WorkerLife {
  std::string name;
  uint64_t incarnation = 0;
  auto operator<=>(const WorkerLife&) const = default;
};

struct Worker {
  std::string name;
  uint64_t incarnation = 0;
  SessionId session = 0;  // 0: no stream
  v1::Hello hello;        // the last one accepted, without `held` and `images`
  int64_t memory_bytes = 0;
  MonotonicTime last_message;  // or the time at which its stream closed
  bool lost = false;           // its lease or reconnect grace is over; it may come back
  int64_t denied_messages = 0;  // on this session: what it had no right to say
};

using LeaseKey = std::pair<std::string, int32_t>;  // worker, device index

struct Fleet {
  std::map<std::string, Worker> workers;
  std::map<SessionId, std::string> sessions;  // of accepted Hellos
  std::map<LeaseKey, v1::LeaseRecord> leases;
  BlameBook blame;            // outlives the workers it is about
  uint64_t last_burn_in = 0;  // number of the newest request of this leader
};

// What a Hello meant.
struct HelloOutcome {
  Status refused;                  // not OK: send Refused and end the stream
  bool retry = false;              // whether the refused worker may dial again
  bool new_life = false;           // the incarnation rose: nothing of the old one lives
  SessionId replaced_session = 0;  // an older stream of the same incarnation, to be ended
};

// Binds `session` to the worker that says `hello`, or refuses it:
// - INVALID_ARGUMENT (bad name, devices or incarnation) and FAILED_PRECONDITION (another protocol
// version; it has
//   followed a later leader; an older life) for good,
// - INVALID_ARGUMENT on a stream that is another worker's already,
// - ALREADY_EXISTS while an older life of the same name may still be alive, or while another process
//   is connected as the very same life: retry.
HelloOutcome AcceptHello(const v1::Hello& hello, SessionId session, uint64_t leader_epoch,
                         const TimeLimits& limits, MonotonicTime now, Fleet* fleet);

// The worker bound to `session`; null if there is none (a stream that never said hello, was
// replaced or has ended).
Worker* FindBySession(SessionId session, Fleet* fleet);
const Worker* FindWorker(const std::string& name, const Fleet& fleet);
inline WorkerLife LifeOf(const Worker& worker) { return {worker.name, worker.incarnation}; }

// A stranger's text as the log shows it: short, and on one line.
std::string Shortened(const std::string& text);

// The stream ended. Returns the worker's name, empty if no worker is bound to it.
std::string CloseSession(SessionId session, MonotonicTime now, Fleet* fleet);

// Marks the workers whose limit has passed as lost and returns their names; their sessions are
// unbound and returned in `closed`. Workers absent for `forget_worker` are dropped with their
// leases, whose deletions go into `writes`.
std::vector<std::string> ExpireWorkers(const TimeLimits& limits, MonotonicTime now, Fleet* fleet,
                                       std::vector<SessionId>* closed, CatalogBatch* writes);

// When ExpireWorkers next has something to do.
std::optional<MonotonicTime> NextExpiry(const TimeLimits& limits, const Fleet& fleet);

// `message` says that nothing may run on a device of `worker`; false if it has no such device.
bool CondemnDevice(const v1::DeviceCondemned& message, Worker* worker);

// Devices of workers with a session, less the condemned ones; `free_only` leaves out leased ones.
ClusterView ListDevices(const Fleet& fleet, bool free_only);

// The free ones of them and those that `job` holds.
ClusterView ListDevicesFor(const Fleet& fleet, const std::string& job);

// Whether a rank of `job`, of any group epoch, still holds a device of a worker with a session: its
// end will be heard of.
bool HoldsDevices(const Fleet& fleet, const std::string& job);

// Leases the device of every rank of `plan` to (job, group_epoch), in memory and in `writes`.
// REQUIRES: none of them is leased.
void LeaseDevices(const v1::Plan& plan, const std::string& job, uint64_t group_epoch, Fleet* fleet,
                  CatalogBatch* writes);

// Ends the lease that (job, group_epoch, rank) has on a device of `worker`; false if it has none.
bool ReleaseRank(const std::string& worker, const std::string& job, uint64_t group_epoch,
                 int32_t rank, Fleet* fleet, CatalogBatch* writes);

// Ends every lease on `worker` that `held` (of its Hello) does not confirm, and returns the ended
// ones.
std::vector<v1::LeaseRecord> ReleaseNotHeld(const std::string& worker, const v1::Hello& hello,
                                            Fleet* fleet, CatalogBatch* writes);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_FLEET_H_
