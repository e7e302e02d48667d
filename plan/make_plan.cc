#include "plan/make_plan.h"

#include <algorithm>
#include <utility>

#include "plan/job/job_defaults.h"
#include "plan/layout/mesh.h"
#include "plan/placed_plan.h"
#include "plan/unplaced_plan.h"
#include "plan/validate/reshard.h"
#include "plan/validate/validate.h"

namespace troupe {

StatusOr<v1::JobSpec> CompleteJobSpec(const v1::JobSpec& spec) {
  v1::JobSpec complete = spec;
  ApplyDefaults(&complete);
  TROUPE_RETURN_IF_ERROR(ValidateJobSpec(complete, JobPurpose::kTrain));
  return complete;
}

StatusOr<v1::Plan> MakeUnplacedPlan(const v1::JobSpec& spec, const v1::DeviceProfile* profile) {
  TROUPE_RETURN_IF_ERROR(ValidateJobSpec(spec, JobPurpose::kPlan));
  TROUPE_ASSIGN_OR_RETURN(const DecodedJob job, DecodeJob(spec));
  return UnplacedPlanOf(job, profile);
}

StatusOr<v1::Plan> PlacePlan(const v1::JobSpec& spec, const v1::Plan& plan,
                             const ClusterView& cluster) {
  TROUPE_ASSIGN_OR_RETURN(const DecodedJob job, DecodeJob(spec));
  return PlacedPlanOf(job, plan, cluster);
}

StatusOr<v1::Plan> MakePlan(const v1::JobSpec& spec, const ClusterView& cluster) {
  TROUPE_RETURN_IF_ERROR(ValidateJobSpec(spec, JobPurpose::kPlan));
  TROUPE_ASSIGN_OR_RETURN(const DecodedJob job, DecodeJob(spec));
  TROUPE_ASSIGN_OR_RETURN(const v1::Plan plan, UnplacedPlanOf(job, nullptr));
  return PlacedPlanOf(job, plan, cluster);
}

std::optional<v1::JobSpec> SmallerLayout(const v1::JobSpec& spec, int devices) {
  const int64_t replicas = spec.parallelism().data_parallel_replicate_degree();
  const int64_t ranks_per_replica = RankCount(spec.parallelism()) / replicas;
  v1::JobSpec candidate = spec;
  auto* const parallelism = candidate.mutable_parallelism();
  for (int64_t fewer = std::min(replicas - 1, devices / ranks_per_replica); fewer >= 1; --fewer) {
    parallelism->set_data_parallel_replicate_degree(fewer);
    if (ValidateJobSpec(candidate, JobPurpose::kPlan).ok()) return candidate;
  }
  // Not even one replica fits: its parameters are distributed over fewer ranks, each of which holds
  // more.
  parallelism->set_data_parallel_replicate_degree(1);
  const int64_t shards = parallelism->data_parallel_shard_degree();
  const int64_t ranks_per_shard = ranks_per_replica / shards;
  for (int64_t fewer = std::min(shards - 1, devices / ranks_per_shard); fewer >= 1; --fewer) {
    parallelism->set_data_parallel_shard_degree(fewer);
    KeepReshard(spec.parallelism(), parallelism);
    if (fewer == 1 && parallelism->expert_parallel_degree() == 1) {
      parallelism->clear_zero_stage();
      parallelism->clear_reshard_after_forward();
      parallelism->set_shard_whole_matrices(false);
    }
    if (ValidateJobSpec(candidate, JobPurpose::kPlan).ok()) return candidate;
  }
  return std::nullopt;
}

}  // namespace troupe
