#include "plan/cost/overlapped_pairs.h"

#include <algorithm>

namespace troupe {

bool HasPairs(const Schedule& schedule) {
  return std::ranges::any_of(schedule.actions, [](const std::vector<Action>& actions) {
    return std::ranges::any_of(actions, &Action::overlaps_next);
  });
}

bool InterleavesPairs(const Schedule& schedule, const v1::MeshDegrees& mesh) {
  return HasPairs(schedule) && (mesh.tensor() > 1 || mesh.context() > 1 || mesh.expert() > 1);
}

std::string PairsLine(const v1::Plan& plan) {
  const bool has_pairs = std::ranges::any_of(plan.schedule().ranks(), [](const auto& rank) {
    return std::ranges::any_of(rank.actions(), [](const std::string& text) {
      return text.find('|') != std::string::npos;
    });
  });
  if (!has_pairs) return "";
  if (!plan.schedule().interleaves_pairs()) {
    return "overlapped pairs: the two actions run one after the other, because tensor, context and "
           "expert are 1 and nothing is exchanged within an action";
  }
  return "overlapped pairs: the two actions are interleaved, and what one exchanges over tensor, "
         "context or expert is in flight while the other computes";
}

}  // namespace troupe
