#include "coordinator/faults/link_blame.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe {
namespace {

const std::string& HostOf(const v1::RankPlacement& placement) {
  return placement.host().empty() ? placement.worker() : placement.host();
}

}  // namespace

LinkBlame BlameForLinks(const v1::Plan& plan, int32_t rank, const std::vector<int32_t>& unreached) {
  LinkBlame blame;
  const v1::RankPlacement& own = plan.ranks(rank);
  std::vector<std::string> peers;
  std::set<std::string> hosts, workers;
  for (const int32_t other : unreached) {
    if (other < 0 || other >= plan.ranks_size()) continue;
    const v1::RankPlacement& peer = plan.ranks(other);
    peers.push_back(fmt::format("rank {} on {}", other, peer.worker()));
    if (HostOf(peer) == HostOf(own)) continue;
    hosts.insert(HostOf(peer));
    workers.insert(peer.worker());
  }
  if (peers.empty()) return blame;
  blame.message = fmt::format("its {} to {} failed", peers.size() == 1 ? "link" : "links",
                              fmt::join(peers, ", "));
  if (hosts.empty()) return blame;
  if (hosts.size() == 1) blame.suspects = workers;
  blame.suspects.insert(own.worker());
  return blame;
}

}  // namespace troupe
