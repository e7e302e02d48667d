// Finds the rank to blame for a hang: the one that did not arrive, not those that waited. Pure.
#ifndef TROUPE_COORDINATOR_FAULTS_HANG_BLAME_H_
#define TROUPE_COORDINATOR_FAULTS_HANG_BLAME_H_

#include <optional>
#include <string>
#include <vector>

#include "troupe/v1/worker.pb.h"

namespace troupe {

struct HangBlame {
  int rank = -1;  // -1: no single rank
  // one sentence with the operation, the communicator, and who waited how long
  std::string message;
  std::vector<int> suspects;  // equally suspect ranks; empty if one is blamed
};

// flights: the flight that each rank reported at the hang, indexed by rank; absent if it did not
// report.
//
// A rank blocked in an operation waits for the members that have not entered it or did not report.
// The blamed rank is one that others wait for and that itself waits for no other. Among several
// such ranks, one that did not report is preferred, then the one that most ranks wait for, then the
// lowest. If no rank is blocked in an operation, the only rank without a report, or the job's only
// rank, is blamed; if several did not report, they are equally suspect and none is blamed.
HangBlame BlameForHang(const std::vector<std::optional<v1::RankFlight>>& flights);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_FAULTS_HANG_BLAME_H_
