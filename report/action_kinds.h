// The kinds of what a rank does in a step, as drawings colour them. Pure.
#ifndef TROUPE_REPORT_ACTION_KINDS_H_
#define TROUPE_REPORT_ACTION_KINDS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "plan/schedules/schedule.h"

namespace troupe {

// Returns the names of the kinds of actions; their indexes are those that KindOf returns.
inline std::vector<std::string> ActionKinds() {
  return {"forward", "backward", "input gradient", "weight gradient"};
}

// Returns the kinds of actions, then the receives from other stages, then what is none of these.
// The indexes are those that KindOfPhase returns.
inline std::vector<std::string> PhaseKinds() {
  std::vector<std::string> kinds = ActionKinds();
  kinds.emplace_back("receive");
  kinds.emplace_back("other phases");
  return kinds;
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

// Returns the kind of a phase by its name in a trace: "F0.1" is an action, "receive 0.1" a receive.
inline size_t KindOfPhase(const std::string& name) {
  const size_t actions = ActionKinds().size();
  if (name.starts_with("receive")) return actions;
  const auto action = ParseAction(name);
  return action.ok() ? KindOf(*action) : actions + 1;
}

}  // namespace troupe

#endif  // TROUPE_REPORT_ACTION_KINDS_H_
