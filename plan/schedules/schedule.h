// A pipeline schedule as data: for every pipe rank the ordered compute actions of one step. Sends and receives follow
// from them (an action waits for what it needs from the neighbouring chunk); a schedule that prints is one that tests
// can read.
//
// Values; thread-safe.
#ifndef TROUPE_PLAN_SCHEDULES_SCHEDULE_H_
#define TROUPE_PLAN_SCHEDULES_SCHEDULE_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace troupe {

enum class ActionKind : char {
  kForward = 'F',
  kInputGradient = 'I',
  kWeightGradient = 'W',
  kBackward = 'B',  // I then W
};

struct Action {
  ActionKind kind = ActionKind::kForward;
  int chunk = 0;  // global chunk number, in model order
  int microbatch = 0;
  bool operator==(const Action&) const = default;
};

// "F0.1": forward of chunk 0, microbatch 1.
std::string ToText(const Action& action);
StatusOr<Action> ParseAction(std::string_view text);

struct Schedule {
  std::string name;
  int microbatches = 0;
  std::vector<std::vector<int>> chunks;       // of each pipe rank
  std::vector<std::vector<Action>> actions;   // of each pipe rank
};

}  // namespace troupe

#endif  // TROUPE_PLAN_SCHEDULES_SCHEDULE_H_
