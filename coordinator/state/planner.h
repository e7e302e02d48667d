// The coordinator's interface to plan/, replaceable so that simulations of whole clusters need not
// build stage programs for every job.
#ifndef TROUPE_COORDINATOR_STATE_PLANNER_H_
#define TROUPE_COORDINATOR_STATE_PLANNER_H_

#include <functional>
#include <optional>

#include "base/status.h"
#include "plan/layout/placement.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// All functions are pure and callable from any thread.
struct Planner {
  // Returns `spec` with every default filled in, or what is wrong with it (INVALID_ARGUMENT with
  // BadRequest details).
  std::function<StatusOr<v1::JobSpec>(const v1::JobSpec& spec)> complete;
  // Makes a plan for a completed spec, not yet placed and without a device kind, or returns the
  // relation that failed. Choices are based on the rates of `profile`, or on FLOPs while it is
  // null.
  std::function<StatusOr<v1::Plan>(const v1::JobSpec& spec, const v1::DeviceProfile* profile)>
      make_plan;
  // Returns `plan` with every rank placed on a different free device of `cluster`. If the plan's
  // device kind is frozen, only devices of that kind are used; otherwise one kind is chosen and
  // frozen in the result, with the choices that depend on such a device's rates.
  // FAILED_PRECONDITION states what is missing if the devices do not suffice.
  std::function<StatusOr<v1::Plan>(const v1::JobSpec& spec, const v1::Plan& plan,
                                   const ClusterView& cluster)>
      place;
  // Returns `spec` with a smaller data_parallel_replicate_degree that fits on `devices` devices;
  // absent if there is none.
  std::function<std::optional<v1::JobSpec>(const v1::JobSpec& spec, int devices)> smaller_layout;
};

// The planner of the product, implemented by plan/.
Planner MakePlanner();

// A new job's spec and plan, or their errors: the slow part of CreateJob, which needs no state.
struct PreparedJob {
  StatusOr<v1::JobSpec> spec;
  StatusOr<v1::Plan> plan;  // if the spec is wrong: the same error
};
PreparedJob Prepare(const Planner& planner, const v1::JobSpec& stated);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_STATE_PLANNER_H_
