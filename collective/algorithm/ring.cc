#include "collective/algorithm/ring.h"

namespace troupe {
namespace {

BlockRange Block(int index, int ranks) {
  const int block = ((index % ranks) + ranks) % ranks;
  return {block, block + 1};
}

Step RingStep(int rank, int ranks, int sent_block, bool reduce) {
  return {.send_to = (rank + 1) % ranks,
          .send = Block(sent_block, ranks),
          .receive_from = (rank + ranks - 1) % ranks,
          .receive = Block(sent_block - 1, ranks),
          .reduce = reduce};
}

}  // namespace

StepList RingReduceScatter(int rank, int ranks) {
  StepList list{.blocks = ranks, .steps = {}};
  for (int k = 0; k + 1 < ranks; ++k) {
    list.steps.push_back(RingStep(rank, ranks, rank - k - 1, true));
  }
  return list;
}

StepList RingAllGather(int rank, int ranks) {
  StepList list{.blocks = ranks, .steps = {}};
  for (int k = 0; k + 1 < ranks; ++k) list.steps.push_back(RingStep(rank, ranks, rank - k, false));
  return list;
}

StepList RingAllReduce(int rank, int ranks) {
  StepList list = RingReduceScatter(rank, ranks);
  const StepList gather = RingAllGather(rank, ranks);
  list.steps.insert(list.steps.end(), gather.steps.begin(), gather.steps.end());
  return list;
}

}  // namespace troupe
