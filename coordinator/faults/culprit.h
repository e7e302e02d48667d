// Assigns the blame for the failure that ended a group epoch. One table maps the recorded cause to
// its effect on the job's restart budget and on the hosts that it ran on. Pure.
#ifndef TROUPE_COORDINATOR_FAULTS_CULPRIT_H_
#define TROUPE_COORDINATOR_FAULTS_CULPRIT_H_

#include "troupe/v1/service.pb.h"

namespace troupe {

// Whether a failure counts against fault_tolerance.max_restarts.
enum class Charged {
  kNever,       // not the job's fault: lost host, absent coordinator
  kDelayed,     // not the job's, but may recur at once: retries wait ever longer
  kIfRepeated,  // charged if it recurs at the same step: a killed process, a hang
  kAlways,      // the job's fault: its process exits by itself, non-finite values
};

// The target that a failure is recorded against (coordinator/state/blame.h) if the failure names a
// worker.
enum class Blamed { kNobody, kHost, kDevice };

struct Culprit {
  Charged charged = Charged::kAlways;
  Blamed blamed = Blamed::kHost;

  bool operator==(const Culprit&) const = default;
};

// Looks up the failure's cause. An unknown cause is always charged and recorded against the host.
Culprit CulpritOf(const v1::Failure& failure);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_FAULTS_CULPRIT_H_
