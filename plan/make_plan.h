// Makes a job's plan (mesh, chunks, schedule, memory, traffic) and places it on devices. Pure.
#ifndef TROUPE_PLAN_MAKE_PLAN_H_
#define TROUPE_PLAN_MAKE_PLAN_H_

#include <optional>

#include "base/status.h"
#include "plan/layout/cluster_view.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// Returns `spec` with every default filled in, or INVALID_ARGUMENT (with BadRequest details) with
// every relation that failed. CreateJob calls it first.
StatusOr<v1::JobSpec> CompleteJobSpec(const v1::JobSpec& spec);

// Makes a plan whose ranks have coordinates but no workers and no device kind. The plan stores
// `profile`, by which it has chosen as MakeBarePlan (plan/bare_plan.h) states, so that planning
// again with the stored profile makes the same choices. A profile without any key counts as none.
// `spec` need not have a name, data or checkpoint paths. REQUIRES: the defaults of `spec` are
// filled in. INVALID_ARGUMENT where the job is impossible.
StatusOr<v1::Plan> MakeUnplacedPlan(const v1::JobSpec& spec,
                                    const v1::DeviceProfile* profile = nullptr);

// Places every rank of `plan` on a free device of `cluster`. A device kind that the plan already
// has (frozen at the first placement, with threads_per_rank) is kept, and only devices of exactly
// that kind are used. The first placement repeats the planner's choices with the profile of the
// devices that it uses, if they announced one. FAILED_PRECONDITION, naming what is missing, where
// the free devices do not suffice.
StatusOr<v1::Plan> PlacePlan(const v1::JobSpec& spec, const v1::Plan& plan,
                             const ClusterView& cluster);

// MakeUnplacedPlan, then PlacePlan.
StatusOr<v1::Plan> MakePlan(const v1::JobSpec& spec, const ClusterView& cluster);

// Returns `spec` with the largest data_parallel_replicate_degree that is smaller than its own, fits
// `devices` devices and validates; if not even 1 fits, with 1 and the largest such
// data_parallel_shard_degree; none where no such layout exists. For
// fault_tolerance.allow_layout_change.
std::optional<v1::JobSpec> SmallerLayout(const v1::JobSpec& spec, int devices);

}  // namespace troupe

#endif  // TROUPE_PLAN_MAKE_PLAN_H_
