// Which algorithm an operation takes, and how its data is cut: pure functions, equal on all ranks
// of a group and, for a given plan, from run to run.
#ifndef TROUPE_COLLECTIVE_ALGORITHM_CHOICE_H_
#define TROUPE_COLLECTIVE_ALGORITHM_CHOICE_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "collective/algorithm/steps.h"
#include "collective/operation.h"

namespace troupe {

enum class Algorithm : unsigned char { kRing, kRecursiveDoubling, kPairwise, kTree, kDirect };

// "ring", "recursive_doubling", …
std::string_view Name(Algorithm algorithm);

// `bytes`: all_reduce, the data; all_gather, the whole output; else without influence. `packed`: the
// reduction has a form of its own for what travels (Reduction::wire_bytes), in which no partial sum
// may be sent.
Algorithm ChooseAlgorithm(CollectiveOperation operation, size_t bytes, int ranks,
                          bool packed = false);

// The steps of `rank`. `peer`: the root of a broadcast, the other end of a send or receive, else
// without influence. REQUIRES: the algorithm is one that ChooseAlgorithm gives for the operation
// and ranks.
StepList MakeSteps(Algorithm algorithm, CollectiveOperation operation, int rank, int ranks,
                   int peer);

// Offsets in bytes of `blocks` balanced blocks of `count` elements, and the end: blocks + 1
// numbers. Sizes differ by at most one granule: an element, or a cache line's worth of elements
// where there are enough of them.
void BalancedOffsets(size_t count, size_t element_bytes, int blocks, std::vector<size_t>* offsets);

// A large all_reduce takes so many elements at a time through all its steps, so that what was
// reduced is still in the caches when it is sent on: each byte of the data then comes from memory
// once and goes back once.
size_t SegmentElements(size_t element_bytes, int blocks);

// A step's bytes travel in messages of this size (the last one shorter), so that what was received
// is reduced while it is in the core's own cache. A multiple of `element_bytes`.
size_t MessageBytes(size_t element_bytes);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_ALGORITHM_CHOICE_H_
