#include "collective/algorithm/recursive_doubling.h"

#include <bit>

#include "base/check.h"

namespace troupe {

StepList RecursiveDoublingAllReduce(int rank, int ranks) {
  constexpr BlockRange kAll{0, 1};
  const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
  StepList list{.blocks = 1, .steps = {}};
  if (rank >= power) {
    list.steps.push_back({.send_to = rank - power, .send = kAll});
    list.steps.push_back({.receive_from = rank - power, .receive = kAll});
    return list;
  }
  const bool stands_for_extra = rank + power < ranks;
  if (stands_for_extra) {
    list.steps.push_back({.receive_from = rank + power, .receive = kAll, .reduce = true});
  }
  for (int distance = 1; distance < power; distance *= 2) {
    const int partner = rank ^ distance;
    list.steps.push_back({.send_to = partner,
                          .send = kAll,
                          .receive_from = partner,
                          .receive = kAll,
                          .reduce = true});
  }
  if (stands_for_extra) list.steps.push_back({.send_to = rank + power, .send = kAll});
  return list;
}

StepList RecursiveDoublingAllGather(int rank, int ranks) {
  TROUPE_CHECK(std::has_single_bit(static_cast<unsigned>(ranks)), "{} ranks", ranks);
  StepList list{.blocks = ranks, .steps = {}};
  for (int distance = 1; distance < ranks; distance *= 2) {
    const int partner = rank ^ distance;
    const int own = rank / distance * distance;
    const int other = partner / distance * distance;
    list.steps.push_back({.send_to = partner,
                          .send = {own, own + distance},
                          .receive_from = partner,
                          .receive = {other, other + distance}});
  }
  return list;
}

}  // namespace troupe
