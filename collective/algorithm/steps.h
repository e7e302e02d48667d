// A collective algorithm as data: what one rank sends, receives and reduces in each step. Pure.
//
// The data of an operation are split into blocks; a step names blocks, and the caller maps blocks
// to bytes. The send and the receive of a step run concurrently. The next step begins when both are
// complete and the received data are reduced into place, so the list fixes the order of every
// reduction.
#ifndef TROUPE_COLLECTIVE_ALGORITHM_STEPS_H_
#define TROUPE_COLLECTIVE_ALGORITHM_STEPS_H_

#include <string>
#include <vector>

namespace troupe {

// Blocks [first, last).
struct BlockRange {
  int first = 0;
  int last = 0;
  friend bool operator==(const BlockRange&, const BlockRange&) = default;
};

inline constexpr int kNobody = -1;

// Peers are ranks of the group.
struct Step {
  int send_to = kNobody;
  BlockRange send;
  int receive_from = kNobody;
  BlockRange receive;
  bool reduce = false;  // combine received data into the blocks instead of overwriting them
  friend bool operator==(const Step&, const Step&) = default;
};

struct StepList {
  int blocks = 1;  // blocks of the data
  std::vector<Step> steps;
};

// One line per step: "0: send 1 [0,1) receive 3 [2,3) reduce".
std::string ToString(const StepList& list);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_ALGORITHM_STEPS_H_
