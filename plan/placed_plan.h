// A plan whose ranks are placed on devices of a cluster. Pure.
#ifndef TROUPE_PLAN_PLACED_PLAN_H_
#define TROUPE_PLAN_PLACED_PLAN_H_

#include "base/status.h"
#include "plan/layout/cluster_view.h"
#include "plan/validate/decoded_job.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// PlacePlan of plan/make_plan.h, for a decoded job. REQUIRES: `plan` is a plan of `job`.
StatusOr<v1::Plan> PlacedPlanOf(const DecodedJob& job, const v1::Plan& plan,
                                const ClusterView& cluster);

}  // namespace troupe

#endif  // TROUPE_PLAN_PLACED_PLAN_H_
