// Ranks as threads of one process, each with its own network over loopback, for tests of code that
// uses communicators.
#ifndef TROUPE_COLLECTIVE_LOOPBACK_LOOPBACK_CLUSTER_H_
#define TROUPE_COLLECTIVE_LOOPBACK_LOOPBACK_CLUSTER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collective/network.h"

namespace troupe {

class LoopbackCluster {
 public:
  // `options`: rank and ranks are set for each rank; the other fields apply to all.
  // `message_delay`: see LoopbackFabric.
  explicit LoopbackCluster(int ranks, const NetworkOptions& options = {},
                           Duration message_delay = Duration::zero());
  // Closes the networks.
  ~LoopbackCluster();

  int ranks() const { return static_cast<int>(networks_.size()); }
  CollectiveNetwork& network(int rank) { return *networks_[static_cast<size_t>(rank)]; }
  const std::vector<std::string>& addresses() const { return addresses_; }

  // Runs body(rank) for all ranks, each in its own thread, and waits for all. A body creates its
  // rank's communicators, calls network(rank).Connect(addresses(), limit), and continues.
  void Run(const std::function<void(int rank)>& body);

 private:
  std::vector<std::unique_ptr<CollectiveNetwork>> networks_;
  std::vector<std::string> addresses_;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_LOOPBACK_LOOPBACK_CLUSTER_H_
