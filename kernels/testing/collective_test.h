// Fixture for collective tests of a backend, in both compute dtypes, with ranks as threads of this
// process. The test files (collective_kernels_test.cc, relayout_kernels_test.cc) are compiled into
// each backend's test, which chooses the backend with INSTANTIATE_TEST_SUITE_P.
#ifndef TROUPE_KERNELS_TESTING_COLLECTIVE_TEST_H_
#define TROUPE_KERNELS_TESTING_COLLECTIVE_TEST_H_

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"
#include "collective/loopback/loopback_cluster.h"
#include "kernels/testing/kernel_test.h"
#include "kernels/testing/testing.h"

namespace troupe::kernels {

class CollectiveTest : public testing::TestWithParam<KernelSetting> {
 protected:
  model::DType compute() const { return GetParam().compute; }
};

using MakeBackend = std::function<std::unique_ptr<Backend>()>;
// Makes a rank's groups before its network is connected.
using MakeGroups = std::function<FindCommunicator(CollectiveNetwork&, int rank)>;
using RankBody = std::function<void(int rank, Backend& backend, const FindCommunicator& groups)>;

// Calls `body` in one thread per rank, after the ranks' groups are connected.
inline void RunRanks(int ranks, const MakeBackend& make, const MakeGroups& make_groups,
                     const RankBody& body) {
  LoopbackCluster cluster(ranks);
  cluster.Run([&](int rank) {
    CollectiveNetwork& network = cluster.network(rank);
    const FindCommunicator groups = make_groups(network, rank);
    TROUPE_CHECK_OK(network.Connect(cluster.addresses(), std::chrono::seconds(10)));
    const std::unique_ptr<Backend> backend = make();
    body(rank, *backend, groups);
  });
}

// Every group contains all ranks.
inline void RunRanks(int ranks, const MakeBackend& make, const RankBody& body) {
  const auto make_groups = [ranks](CollectiveNetwork& network, int) -> FindCommunicator {
    std::vector<int> all(static_cast<size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    Communicator* const group =
        network.MakeCommunicator("group", Purpose::kTensor, all, "group").value();
    return [group](const model::CollectiveGroup&) { return group; };
  };
  RunRanks(ranks, make, make_groups, body);
}

// Prepares and connects an executable. `program` and `plan` must outlive it. Aborts the process on
// an error.
inline std::unique_ptr<Executable> PrepareRank(Backend& backend, const model::Program& program,
                                               const model::MemoryPlan& plan,
                                               const FindCommunicator& groups) {
  auto executable = backend.Prepare(program, plan, groups);
  TROUPE_CHECK_OK(executable.status());
  TROUPE_CHECK_OK((*executable)->Connect());
  return std::move(*executable);
}

}  // namespace troupe::kernels

#endif  // TROUPE_KERNELS_TESTING_COLLECTIVE_TEST_H_
