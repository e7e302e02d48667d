// Algorithms in which data goes straight from its owner to its reader.
#ifndef TROUPE_COLLECTIVE_ALGORITHM_DIRECT_H_
#define TROUPE_COLLECTIVE_ALGORITHM_DIRECT_H_

#include "collective/algorithm/steps.h"

namespace troupe {

// Step k sends block (rank + k) of the input to rank + k and receives from rank - k its block of
// the output.
StepList PairwiseAllToAll(int rank, int ranks);

// Step k sends block (rank + k) to rank + k, and reduces into this rank's block what rank - k has of
// it: one rank makes each block's sum, of numbers that nobody has added to. The bytes are a ring's.
StepList PairwiseReduceScatter(int rank, int ranks);
// That, and blocks gathered round a ring.
StepList PairwiseAllReduce(int rank, int ranks);

// One block to, or from, `peer`.
StepList SendTo(int peer);
StepList ReceiveFrom(int peer);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_ALGORITHM_DIRECT_H_
