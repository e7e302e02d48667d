// Selects the algorithm of an operation and splits its data. Pure functions: the result is
// identical on all ranks of a group and, for a given plan, in every run.
#ifndef TROUPE_COLLECTIVE_ALGORITHM_CHOICE_H_
#define TROUPE_COLLECTIVE_ALGORITHM_CHOICE_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "collective/algorithm/operation.h"
#include "collective/algorithm/steps.h"

namespace troupe {

enum class Algorithm : unsigned char { kRing, kRecursiveDoubling, kPairwise, kTree, kDirect };

// "ring", "recursive_doubling", …
std::string_view Name(Algorithm algorithm);

// `bytes`: the size of the data (all_reduce) or of the whole output (all_gather); ignored for other
// operations. `packed`: the reduction has a wire format of its own (Reduction::wire_bytes); then no
// partial sum may be sent.
Algorithm ChooseAlgorithm(CollectiveOperation operation, size_t bytes, int ranks,
                          bool packed = false);

// The steps of `rank`. `peer`: the root of a broadcast, or the other rank of a send or receive;
// ignored otherwise. REQUIRES: ChooseAlgorithm returns `algorithm` for this operation and number of
// ranks.
StepList MakeSteps(Algorithm algorithm, CollectiveOperation operation, int rank, int ranks,
                   int peer);

// Offsets in bytes of `blocks` balanced blocks of `count` elements, followed by the end offset:
// blocks + 1 numbers. Sizes differ by at most one granule: an element, or a cache line's worth of
// elements if there are enough of them.
void BalancedOffsets(size_t count, size_t element_bytes, int blocks, std::vector<size_t>* offsets);

// The number of elements that a large all_reduce processes at a time through all its steps, so that
// a reduced segment is still cached when it is sent on. Each byte of the data is then read from
// memory once and written once.
size_t SegmentElements(size_t element_bytes, int blocks);

// The bytes of a step are sent in messages of this size (the last one is shorter), so that a
// received message is reduced while it is in the core's own cache. A multiple of `element_bytes`.
size_t MessageBytes(size_t element_bytes);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_ALGORITHM_CHOICE_H_
