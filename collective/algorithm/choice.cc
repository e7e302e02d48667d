#include "collective/algorithm/choice.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "collective/algorithm/direct.h"
#include "collective/algorithm/recursive_doubling.h"
#include "collective/algorithm/ring.h"
#include "collective/algorithm/tree.h"

namespace troupe {
namespace {

// Up to this size the number of steps costs more time than the bytes.
constexpr size_t kSmallBytes = 16 * 1024;
constexpr size_t kMessageBytes = 256 * 1024;
// Two messages per step halve the number of synchronisations between ranks, at the same throughput.
constexpr size_t kSegmentBlockBytes = 2 * kMessageBytes;
constexpr size_t kCacheLineBytes = 64;

}  // namespace

std::string_view Name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::kRing:
      return "ring";
    case Algorithm::kRecursiveDoubling:
      return "recursive_doubling";
    case Algorithm::kPairwise:
      return "pairwise";
    case Algorithm::kTree:
      return "tree";
    case Algorithm::kDirect:
      return "direct";
  }
  TROUPE_CHECK(false, "algorithm {} has no name", static_cast<int>(algorithm));
}

Algorithm ChooseAlgorithm(CollectiveOperation operation, size_t bytes, int ranks, bool packed) {
  switch (operation) {
    case CollectiveOperation::kAllReduce:
      if (packed) return Algorithm::kPairwise;
      return bytes <= kSmallBytes ? Algorithm::kRecursiveDoubling : Algorithm::kRing;
    case CollectiveOperation::kAllGather:
      return bytes <= kSmallBytes && std::has_single_bit(static_cast<unsigned>(ranks))
                 ? Algorithm::kRecursiveDoubling
                 : Algorithm::kRing;
    case CollectiveOperation::kReduceScatter:
      return packed ? Algorithm::kPairwise : Algorithm::kRing;
    case CollectiveOperation::kAllToAll:
      return Algorithm::kPairwise;
    case CollectiveOperation::kBroadcast:
    case CollectiveOperation::kBarrier:
      return Algorithm::kTree;
    case CollectiveOperation::kSend:
    case CollectiveOperation::kReceive:
      return Algorithm::kDirect;
  }
  TROUPE_CHECK(false, "no algorithm for operation {}", static_cast<int>(operation));
}

StepList MakeSteps(Algorithm algorithm, CollectiveOperation operation, int rank, int ranks,
                   int peer) {
  const bool ring = algorithm == Algorithm::kRing;
  switch (operation) {
    case CollectiveOperation::kAllReduce:
      if (algorithm == Algorithm::kPairwise) return PairwiseAllReduce(rank, ranks);
      return ring ? RingAllReduce(rank, ranks) : RecursiveDoublingAllReduce(rank, ranks);
    case CollectiveOperation::kAllGather:
      return ring ? RingAllGather(rank, ranks) : RecursiveDoublingAllGather(rank, ranks);
    case CollectiveOperation::kReduceScatter:
      return ring ? RingReduceScatter(rank, ranks) : PairwiseReduceScatter(rank, ranks);
    case CollectiveOperation::kAllToAll:
      return PairwiseAllToAll(rank, ranks);
    case CollectiveOperation::kBroadcast:
      return TreeBroadcast(rank, ranks, peer);
    case CollectiveOperation::kBarrier:
      return DisseminationBarrier(rank, ranks);
    case CollectiveOperation::kSend:
      return SendTo(peer);
    case CollectiveOperation::kReceive:
      return ReceiveFrom(peer);
  }
  TROUPE_CHECK(false, "no steps for operation {}", static_cast<int>(operation));
}

void BalancedOffsets(size_t count, size_t element_bytes, int blocks, std::vector<size_t>* offsets) {
  const size_t parts = static_cast<size_t>(blocks);
  const size_t line = std::max<size_t>(1, kCacheLineBytes / element_bytes);
  const size_t granule = count >= 16 * parts * line ? line : 1;
  const size_t granules = (count + granule - 1) / granule;
  offsets->resize(parts + 1);
  for (size_t i = 0; i <= parts; ++i) {
    const size_t before = granules / parts * i + std::min(i, granules % parts);
    (*offsets)[i] = std::min(count, before * granule) * element_bytes;
  }
}

size_t SegmentElements(size_t element_bytes, int blocks) {
  return std::max<size_t>(1, kSegmentBlockBytes / element_bytes) * static_cast<size_t>(blocks);
}

size_t MessageBytes(size_t element_bytes) {
  return std::max<size_t>(1, kMessageBytes / element_bytes) * element_bytes;
}

}  // namespace troupe
