// A planner for tests and benchmarks of the control plane, in which no job starts.
#ifndef TROUPE_COORDINATOR_UNPLACED_PLANNER_H_
#define TROUPE_COORDINATOR_UNPLACED_PLANNER_H_

#include <functional>
#include <optional>
#include <utility>

#include "coordinator/state/planner.h"

namespace troupe {

// Makes plans of one rank and finds no device for them. Calls `before_plan` before it makes one.
inline Planner MakeUnplacedPlanner(std::function<void()> before_plan = [] {}) {
  return {
      .complete = [](const v1::JobSpec& spec) -> StatusOr<v1::JobSpec> { return spec; },
      .make_plan = [before_plan = std::move(before_plan)](
                       const v1::JobSpec&, const v1::DeviceProfile*) -> StatusOr<v1::Plan> {
        before_plan();
        v1::Plan plan;
        plan.add_ranks();
        plan.set_digest("unplaced");
        return plan;
      },
      .place = [](const v1::JobSpec&, const v1::Plan&, const ClusterView&) -> StatusOr<v1::Plan> {
        return FailedPrecondition("there is no device");
      },
      .smaller_layout = [](const v1::JobSpec&, int) -> std::optional<v1::JobSpec> {
        return std::nullopt;
      }};
}

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_UNPLACED_PLANNER_H_
