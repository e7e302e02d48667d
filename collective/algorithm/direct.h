// Algorithms that send data directly from the owner to the reader.
#ifndef TROUPE_COLLECTIVE_ALGORITHM_DIRECT_H_
#define TROUPE_COLLECTIVE_ALGORITHM_DIRECT_H_

#include "collective/algorithm/steps.h"

namespace troupe {

// Step k sends block (rank + k) of the input to rank + k and receives this rank's block from rank -
// k.
StepList PairwiseAllToAll(int rank, int ranks);

// Step k sends block (rank + k) to rank + k and reduces the block received from rank - k into this
// rank's block. Each block is summed by one rank from unsummed inputs. Moves as many bytes as a
// ring.
StepList PairwiseReduceScatter(int rank, int ranks);
// PairwiseReduceScatter, followed by a ring all-gather.
StepList PairwiseAllReduce(int rank, int ranks);

// One block to or from `peer`.
StepList SendTo(int peer);
StepList ReceiveFrom(int peer);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_ALGORITHM_DIRECT_H_
