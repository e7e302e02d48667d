#include "coordinator/state/planner.h"

#include <utility>

#include "plan/make_plan.h"

namespace troupe {

Planner MakePlanner() {
  return {.complete = CompleteJobSpec,
          .make_plan = MakeUnplacedPlan,
          .place = PlacePlan,
          .smaller_layout = SmallerLayout};
}

PreparedJob Prepare(const Planner& planner, const v1::JobSpec& stated) {
  StatusOr<v1::JobSpec> spec = planner.complete(stated);
  if (!spec.ok()) return {spec.status(), spec.status()};
  StatusOr<v1::Plan> plan = planner.make_plan(*spec, nullptr);
  return {std::move(spec), std::move(plan)};
}

}  // namespace troupe
