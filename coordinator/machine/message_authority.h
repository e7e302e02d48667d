// Message authority: decides, for each kind of worker message, whether its sender may send it.
// Pure.
//
//   heartbeat, goodbye, device_condemned   any worker: they concern only itself
//   rank_device, rank_address, rank_ready,
//   step_report, shard_done, shard_failed, rank_failed,
//   rank_cores, rank_flight, image_saved   the worker on which the job's current group has the rank
//   manifest_done                          the worker of rank 0 of that group
//   rank_stopped                           as above, or the holder of that rank's lease, also of an
//                                          epoch that has ended
//   checkpoint_deleted, checkpoint_verified,
//   log_lines, rank_trace, burn_in_done    the worker that was sent this very request
//
// A rank_device with more coordinates than a chip has is denied, whoever sends it: it is kept, and
// sent to every rank.
//
// A worker is a name with an incarnation, bound to one session (coordinator/state/fleet.h).
#ifndef TROUPE_COORDINATOR_MACHINE_MESSAGE_AUTHORITY_H_
#define TROUPE_COORDINATOR_MACHINE_MESSAGE_AUTHORITY_H_

#include <map>
#include <string>

#include "coordinator/machine/log_reads.h"
#include "coordinator/machine/traces.h"
#include "coordinator/state/fleet.h"
#include "coordinator/state/job_state.h"
#include "coordinator/state/options.h"
#include "troupe/v1/worker.pb.h"

namespace troupe {

struct Authority {
  enum class Verdict {
    kAccepted,
    // Once true and since overtaken by events, or about an unknown object: no effect.
    kStale,
    // The sender has no right to send it: no effect, and it is logged.
    kDenied,
  };
  Verdict verdict = Verdict::kAccepted;
  std::string reason;  // kDenied: the relation that failed

  bool operator==(const Authority&) const = default;
};

// The state that JudgeMessage consults: requests and groups.
struct AuthorityView {
  const std::map<std::string, Job>& jobs;
  const Fleet& fleet;
  const LogReads& log_reads;
  const Traces& traces;
  const KnownBugs& bugs;
};

// REQUIRES: `sender` has a session and `message` came on it; the message is not a Hello.
Authority JudgeMessage(const v1::WorkerMessage& message, const Worker& sender,
                       const AuthorityView& view);

// The name of the message's kind, for example "checkpoint_verified"; "none" for an empty message.
std::string KindOf(const v1::WorkerMessage& message);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_MACHINE_MESSAGE_AUTHORITY_H_
