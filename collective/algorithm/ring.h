// Ring algorithms: every rank sends to the next rank and receives from the previous one. They move
// the fewest bytes: (n-1)/n of the data in each direction for a scatter or a gather. n is any
// number of ranks; the data have n blocks, and block r belongs to rank r.
//
// Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
#ifndef TROUPE_COLLECTIVE_ALGORITHM_RING_H_
#define TROUPE_COLLECTIVE_ALGORITHM_RING_H_

#include "collective/algorithm/steps.h"

namespace troupe {

// Block b starts at rank b+1 and accumulates the ranks' parts in ring order until it is complete at
// rank b.
StepList RingReduceScatter(int rank, int ranks);

StepList RingAllGather(int rank, int ranks);

// Reduce-scatter, then all-gather.
StepList RingAllReduce(int rank, int ranks);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_ALGORITHM_RING_H_
