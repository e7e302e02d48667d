#include "collective/algorithm/tree.h"

namespace troupe {

StepList TreeBroadcast(int rank, int ranks, int root) {
  constexpr BlockRange kAll{0, 1};
  const int place = (rank + ranks - root) % ranks;  // 0 for the root
  StepList list{.blocks = 1, .steps = {}};
  for (int distance = 1; distance < ranks; distance *= 2) {
    if (place < distance && place + distance < ranks) {
      list.steps.push_back({.send_to = (rank + distance) % ranks, .send = kAll});
    } else if (place >= distance && place < 2 * distance) {
      list.steps.push_back({.receive_from = (rank + ranks - distance) % ranks, .receive = kAll});
    }
  }
  return list;
}

StepList DisseminationBarrier(int rank, int ranks) {
  StepList list{.blocks = 1, .steps = {}};
  for (int distance = 1; distance < ranks; distance *= 2) {
    list.steps.push_back({.send_to = (rank + distance) % ranks,
                          .send = {0, 1},
                          .receive_from = (rank + ranks - distance) % ranks,
                          .receive = {0, 1}});
  }
  return list;
}

}  // namespace troupe
