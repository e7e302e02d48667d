// Algorithms of log2(n) steps in which the set of informed ranks doubles with each step. Any number
// of ranks.
#ifndef TROUPE_COLLECTIVE_ALGORITHM_TREE_H_
#define TROUPE_COLLECTIVE_ALGORITHM_TREE_H_

#include "collective/algorithm/steps.h"

namespace troupe {

// Binomial tree; one block.
StepList TreeBroadcast(int rank, int ranks, int root);

// Dissemination: step k sends to rank + 2^k and receives from rank - 2^k. One (empty) block.
StepList DisseminationBarrier(int rank, int ranks);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_ALGORITHM_TREE_H_
