#include "coordinator/planner.h"

#include "plan/make_plan.h"

namespace troupe {

Planner MakePlanner() {
  return {.complete = CompleteJobSpec,
          .make_plan = MakeUnplacedPlan,
          .place = PlacePlan,
          .smaller_layout = SmallerLayout};
}

}  // namespace troupe
