// Recursive doubling: in step k ranks at distance 2^k exchange what they have. Fewest steps,
// log2(n); each carries all data, so it is for small messages.
#ifndef TROUPE_COLLECTIVE_ALGORITHM_RECURSIVE_DOUBLING_H_
#define TROUPE_COLLECTIVE_ALGORITHM_RECURSIVE_DOUBLING_H_

#include "collective/algorithm/steps.h"

namespace troupe {

// One block. With p the largest power of two not above `ranks`, rank r >= p first gives its data to
// rank r - p and gets the result from it at the end. For two ranks this is the direct exchange.
StepList RecursiveDoublingAllReduce(int rank, int ranks);

// `ranks` blocks, block r belonging to rank r. REQUIRES: ranks is a power of two.
StepList RecursiveDoublingAllGather(int rank, int ranks);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_ALGORITHM_RECURSIVE_DOUBLING_H_
