#include "collective/algorithm/direct.h"

#include "collective/algorithm/ring.h"

namespace troupe {

StepList PairwiseAllToAll(int rank, int ranks) {
  StepList list{.blocks = ranks, .steps = {}};
  for (int k = 1; k < ranks; ++k) {
    const int to = (rank + k) % ranks;
    const int from = (rank + ranks - k) % ranks;
    list.steps.push_back(
        {.send_to = to, .send = {to, to + 1}, .receive_from = from, .receive = {from, from + 1}});
  }
  return list;
}

StepList PairwiseReduceScatter(int rank, int ranks) {
  StepList list{.blocks = ranks, .steps = {}};
  for (int k = 1; k < ranks; ++k) {
    const int to = (rank + k) % ranks;
    list.steps.push_back({.send_to = to,
                          .send = {to, to + 1},
                          .receive_from = (rank + ranks - k) % ranks,
                          .receive = {rank, rank + 1},
                          .reduce = true});
  }
  return list;
}

StepList PairwiseAllReduce(int rank, int ranks) {
  StepList list = PairwiseReduceScatter(rank, ranks);
  const StepList gather = RingAllGather(rank, ranks);
  list.steps.insert(list.steps.end(), gather.steps.begin(), gather.steps.end());
  return list;
}

StepList SendTo(int peer) { return {.blocks = 1, .steps = {{.send_to = peer, .send = {0, 1}}}}; }

StepList ReceiveFrom(int peer) {
  return {.blocks = 1, .steps = {{.receive_from = peer, .receive = {0, 1}}}};
}

}  // namespace troupe
