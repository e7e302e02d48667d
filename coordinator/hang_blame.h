// Which rank a hang is to be blamed on: the one that did not arrive, not those that waited. Pure.
#ifndef TROUPE_COORDINATOR_HANG_BLAME_H_
#define TROUPE_COORDINATOR_HANG_BLAME_H_

#include <optional>
#include <string>
#include <vector>

#include "troupe/v1/worker.pb.h"

namespace troupe {

struct HangBlame {
  int rank = -1;        // -1: none of them alone
  std::string message;  // a sentence that names operation, communicator, and who waited how long
  std::vector<int> suspects;  // ranks that are equally suspect; empty where one is blamed
};

// flights: what each rank said when the job hung, by rank; absent: it said nothing.
//
// A rank that stands in an operation waits for the members that have not entered it, or said
// nothing. Blamed is who is waited for and itself waits for nobody: where several are, one that
// said nothing, then the one that most wait for, then the lowest. Where nobody stands in an
// operation it is the only rank that said nothing; where several did not, they are equally suspect
// and none is blamed.
HangBlame BlameForHang(const std::vector<std::optional<v1::RankFlight>>& flights);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_HANG_BLAME_H_
