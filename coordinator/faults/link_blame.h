// Finds the workers that failed links between ranks implicate. Pure.
#ifndef TROUPE_COORDINATOR_FAULTS_LINK_BLAME_H_
#define TROUPE_COORDINATOR_FAULTS_LINK_BLAME_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "troupe/v1/plan.pb.h"

namespace troupe {

struct LinkBlame {
  std::set<std::string> suspects;  // workers, one of which is at fault; empty: nothing is known
  std::string message;             // "its link to rank 1 on worker-1 failed"; empty: no link failed
};

// `rank`: the rank that reported first. `unreached`: the ranks to which its links had failed by
// then; numbers that are not ranks of `plan` are ignored.
//
// Links inside a host are disregarded: they fail only with a process, which is reported by itself.
// Links to several hosts have only the rank's own worker in common, which is therefore suspected
// alone. Links to one host implicate both ends equally. Reports of other ranks are no evidence:
// by then ranks are being stopped, and a link to a stopped rank fails too.
LinkBlame BlameForLinks(const v1::Plan& plan, int32_t rank, const std::vector<int32_t>& unreached);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_FAULTS_LINK_BLAME_H_
