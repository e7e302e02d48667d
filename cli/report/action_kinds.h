// The kinds of a schedule's actions, as timelines colour them. Pure.
#ifndef TROUPE_CLI_REPORT_ACTION_KINDS_H_
#define TROUPE_CLI_REPORT_ACTION_KINDS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "plan/schedules/schedule.h"

namespace troupe {

// Returns the names of the kinds; their indexes are those that KindOf returns.
inline std::vector<std::string> ActionKinds() {
  return {"forward", "backward", "input gradient", "weight gradient"};
}

inline size_t KindOf(const Action& action) {
  switch (action.kind) {
    case ActionKind::kForward:
      return 0;
    case ActionKind::kBackward:
      return 1;
    case ActionKind::kInputGradient:
      return 2;
    case ActionKind::kWeightGradient:
      return 3;
  }
  return 0;
}

}  // namespace troupe

#endif  // TROUPE_CLI_REPORT_ACTION_KINDS_H_
