// Who is to blame for the failure that ended a group epoch: one table from the recorded cause to
// what follows from it, for the job's budget of restarts and for the hosts that it ran on. Pure.
#ifndef TROUPE_COORDINATOR_CULPRIT_H_
#define TROUPE_COORDINATOR_CULPRIT_H_

#include "troupe/v1/service.pb.h"

namespace troupe {

// Whether a failure counts against fault_tolerance.max_restarts.
enum class Charged {
  kNever,       // not the job's: a lost host, a coordinator that was away
  kDelayed,     // not the job's, but the next try may meet it at once: that waits ever longer
  kIfRepeated,  // the job's if it comes again at the same step: a killed process, a hang
  kAlways,      // the job's: its process ends by itself, its numbers are not finite
};

// What the failure is laid to (coordinator/blame.h), where it names a worker.
enum class Blamed { kNobody, kHost, kDevice };

struct Culprit {
  Charged charged = Charged::kAlways;
  Blamed blamed = Blamed::kHost;

  bool operator==(const Culprit&) const = default;
};

// A cause that the table does not have is charged always and laid to its host.
Culprit CulpritOf(const v1::Failure& failure);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_CULPRIT_H_
