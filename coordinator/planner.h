// What the coordinator asks of plan/: a seam, so that simulations of whole clusters need not build
// stage programs for every job.
#ifndef TROUPE_COORDINATOR_PLANNER_H_
#define TROUPE_COORDINATOR_PLANNER_H_

#include <functional>
#include <optional>

#include "base/status.h"
#include "plan/placement.h"
#include "troupe/v1/job.pb.h"
#include "troupe/v1/plan.pb.h"

namespace troupe {

// All pure and callable from any thread.
struct Planner {
  // `spec` with every default filled in, or what is wrong with it (INVALID_ARGUMENT with BadRequest
  // details).
  std::function<StatusOr<v1::JobSpec>(const v1::JobSpec& spec)> complete;
  // A plan for a completed spec, not yet placed and with no device kind, or the relation that
  // failed. It chooses by the rates of `profile`; by FLOPs, for now, where it is null.
  std::function<StatusOr<v1::Plan>(const v1::JobSpec& spec, const v1::DeviceProfile* profile)>
      make_plan;
  // `plan` with every rank placed on one of the free devices of `cluster`, no device twice. If the
  // plan's device kind is frozen, only devices of that kind are used, else one kind is chosen and
  // frozen in the result, with what is chosen by the rates of such a device.
  // FAILED_PRECONDITION, saying what is missing, where they do not suffice.
  std::function<StatusOr<v1::Plan>(const v1::JobSpec& spec, const v1::Plan& plan,
                                   const ClusterView& cluster)>
      place;
  // `spec` with a smaller data_parallel_replicate_degree that fits `devices` devices; none where
  // there is none.
  std::function<std::optional<v1::JobSpec>(const v1::JobSpec& spec, int devices)> smaller_layout;
};

// The product's: plan/.
Planner MakePlanner();

// A new job's spec and plan, or what is wrong with them: what of CreateJob takes long and needs no
// state.
struct PreparedJob {
  StatusOr<v1::JobSpec> spec;
  StatusOr<v1::Plan> plan;  // where the spec is wrong: the same error
};
PreparedJob Prepare(const Planner& planner, const v1::JobSpec& stated);

}  // namespace troupe

#endif  // TROUPE_COORDINATOR_PLANNER_H_
