// A collective algorithm as data: what one rank sends, receives and reduces, step by step. Pure.
//
// An operation's data is cut into blocks; a step names blocks, and the caller maps blocks to bytes.
// A step's send and receive run together; the next step begins when both are done and what was
// received is reduced into place, so the order of every reduction is fixed by the list.
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
  bool reduce = false;  // combine what is received into the blocks rather than overwrite them
  friend bool operator==(const Step&, const Step&) = default;
};

struct StepList {
  int blocks = 1;  // the data's
  std::vector<Step> steps;
};

// One line a step: "0: send 1 [0,1) receive 3 [2,3) reduce".
std::string ToString(const StepList& list);

}  // namespace troupe

#endif  // TROUPE_COLLECTIVE_ALGORITHM_STEPS_H_
