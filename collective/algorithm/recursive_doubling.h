// Recursive doubling: in step k, ranks at distance 2^k exchange all their data. It takes the fewest
// steps, log2(n), but each step carries all data, so it suits small messages.
#ifndef TROUPE_COLLECTIVE_ALGORITHM_RECURSIVE_DOUBLING_H_
#define TROUPE_COLLECTIVE_ALGORITHM_RECURSIVE_DOUBLING_H_

#include "collective/algorithm/steps.h"

namespace troupe {

// One block. With p the largest power of two not above `ranks`, rank r >= p first sends its data to
// rank r - p and receives the result from it at the end. For two ranks this is the direct exchange.
StepList RecursiveDoublingAllReduce(int rank, int ranks);

// `ranks` blocks; block r belongs to rank r. REQUIRES: ranks is a power of two.
StepList RecursiveDoublingAllGather(int rank, int ranks);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_ALGORITHM_RECURSIVE_DOUBLING_H_
