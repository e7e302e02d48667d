// The events that the session machine (worker/session/session.h) handles. Data only.
#ifndef TROUPE_WORKER_SESSION_EVENT_H_
#define TROUPE_WORKER_SESSION_EVENT_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "troupe/v1/rank.pb.h"
#include "troupe/v1/worker.pb.h"

namespace troupe::session {

struct Tick {};
struct StreamMessage {
  uint64_t stream = 0;
  v1::CoordinatorMessage message;
};
struct StreamClosed {
  uint64_t stream = 0;
  std::string reason;
  bool access_refused = false;  // this worker's certificate has no access
};
struct RankReported {
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
// The daemon was asked to stop at once.
struct Leave {};
// The daemon was asked to stop, or its host will: it is killed after `limit`.
struct Drain {
  std::string reason;
  Duration limit{};
};
struct Event {
  MonotonicTime now;
  std::variant<Tick, StreamMessage, StreamClosed, RankReported, RankExited, DeviceFault,
               CheckpointGone, CheckpointReadBack, BurnInEnded, OthersClaim, CoreTableFault, Leave,
               Drain>
      what;
};

}  // namespace troupe::session

#endif  // TROUPE_WORKER_SESSION_EVENT_H_
