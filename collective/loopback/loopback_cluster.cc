#include "collective/loopback/loopback_cluster.h"

#include <thread>

#include "base/check.h"
#include "collective/loopback/loopback_transport.h"

namespace troupe {

LoopbackCluster::LoopbackCluster(int ranks, const NetworkOptions& options, Duration message_delay) {
  LoopbackFabric fabric(ranks, message_delay);
  for (int rank = 0; rank < ranks; ++rank) {
    NetworkOptions own = options;
    own.rank = rank;
    own.ranks = ranks;
    auto network = CollectiveNetwork::Make(own, fabric.MakeTransport(rank));
    TROUPE_CHECK(network.ok(), "{}", ToString(network.status()));
    addresses_.push_back((*network)->address());
    networks_.push_back(std::move(*network));
  }
}

LoopbackCluster::~LoopbackCluster() = default;

void LoopbackCluster::Run(const std::function<void(int rank)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks(); ++rank) threads.emplace_back([&body, rank] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace troupe
