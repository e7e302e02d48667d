// From a job to its plan: mesh, chunks, schedule, memory, traffic; then placed on devices. All pure.
#ifndef TROUPE_PLAN_MAKE_PLAN_H_
#define TROUPE_PLAN_MAKE_PLAN_H_

#include <optional>

#include "base/status.h"
#include "plan/placement.h"
#include "plan/schedules/schedule.h"
#include "troupe/v1/device_profile.pb.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// `spec` with every default filled in, or every relation that failed (INVALID_ARGUMENT with BadRequest
// details): what CreateJob calls first.
StatusOr<v1::JobSpec> CompleteJobSpec(const v1::JobSpec& spec);

// What programs are built from, and when they run.
struct BarePlan {
  v1::Plan plan;  // mesh, lag, chunks, buckets and how pairs run alone
  Schedule schedule;
};

// What is chosen (pipeline_parallel_schedule: auto) is chosen by the rates of `profile`; by FLOPs where it is null.
// REQUIRES: `spec` is valid, its defaults are filled in. INVALID_ARGUMENT where the schedule or the cut cannot be.
StatusOr<BarePlan> MakeBarePlan(const v1::JobSpec& spec, const v1::DeviceProfile* profile);

// A plan with coordinates but neither workers nor device kind. The spec's defaults must be filled in; it need not have
// name, data or checkpoint paths. INVALID_ARGUMENT where the job cannot be. The plan keeps `profile`, by which it
// has chosen as MakeBarePlan says: with it a plan made again chooses the same. One that states nothing is none.
StatusOr<v1::Plan> MakeUnplacedPlan(const v1::JobSpec& spec,
                                    const v1::DeviceProfile* profile = nullptr);

// `plan` with every rank on a free device of `cluster`. A device kind that the plan has already (frozen at the first
// placement, with threads_per_rank) is kept, and only devices of that very kind are used. The first placement
// chooses again by the profile of the devices that it takes, if they announced one. FAILED_PRECONDITION, saying
// what is missing, where they do not suffice.
StatusOr<v1::Plan> PlacePlan(const v1::JobSpec& spec, const v1::Plan& plan,
                             const ClusterView& cluster);

// Both of the above.
StatusOr<v1::Plan> MakePlan(const v1::JobSpec& spec, const ClusterView& cluster);

// `spec` on the largest data_parallel_replicate_degree that is smaller than its own, fits `devices` devices and
// validates; where not even 1 fits, with 1 and such a data_parallel_shard_degree; none where there is no such layout.
// For fault_tolerance.allow_layout_change.
std::optional<v1::JobSpec> SmallerLayout(const v1::JobSpec& spec, int devices);

}  // namespace troupe

#endif  // TROUPE_PLAN_MAKE_PLAN_H_
