// The ring: every rank sends to the next and receives from the one before. Moves the fewest bytes:
// (n-1)/n of the data each way for a scatter or a gather. Any number of ranks n; data in n blocks,
// block r belonging to rank r.
//
// Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
#ifndef TROUPE_COLLECTIVE_ALGORITHM_RING_H_
#define TROUPE_COLLECTIVE_ALGORITHM_RING_H_

#include "collective/algorithm/steps.h"

namespace troupe {

// Block b starts at rank b+1 and gathers the ranks' parts in ring order until it ends, whole, at
// rank b.
StepList RingReduceScatter(int rank, int ranks);

StepList RingAllGather(int rank, int ranks);

// Reduce-scatter, then all-gather.
StepList RingAllReduce(int rank, int ranks);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_ALGORITHM_RING_H_
