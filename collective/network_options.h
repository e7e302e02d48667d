// Identity, limits and host of one rank's collective network.
#ifndef TROUPE_COLLECTIVE_NETWORK_OPTIONS_H_
#define TROUPE_COLLECTIVE_NETWORK_OPTIONS_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace troupe {

struct NetworkOptions {
  int rank = 0;  // rank of this process in the job
  int ranks = 1;
  uint64_t group_epoch = 0;
  std::array<uint8_t, 32> group_key{};
  // An operation that has not finished this long after its issue hangs.
  Duration hang_limit = std::chrono::seconds(60);
  // Waiting threads spin only if ranks_on_host <= cores_on_host.
  int ranks_on_host = 1;
  int cores_on_host = 1;
  // The number of operations that the flight recorder keeps.
  int recorded_operations = 1024;
  // Number of the island of each rank; empty: not known.
  std::vector<int> islands;
};

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_NETWORK_OPTIONS_H_
