// Rules on a job that several parts of Troupe apply, each written once. Pure. Code that has a
// decoded job (plan/validate/decoded_job.h) asks that instead.
#ifndef TROUPE_PLAN_JOB_JOB_RULES_H_
#define TROUPE_PLAN_JOB_JOB_RULES_H_

#include <cstdint>

#include "troupe/v1/job.pb.h"

namespace troupe {

// Whether a created job makes checkpoints.
inline bool HasCheckpointFolder(const v1::JobSpec& spec) {
  return !spec.checkpoint().folder().empty();
}

// Whether a job that may not be created yet will make checkpoints: one that states no folder gets
// that of its cluster.
inline bool WillHaveCheckpointFolder(const v1::JobSpec& spec) {
  return !spec.checkpoint().has_folder() || HasCheckpointFolder(spec);
}

// Whether the job holds out samples for validation.
inline bool HoldsOutSamples(const v1::DataSpec& data) {
  return !data.validation().empty() || data.validation_fraction() > 0;
}

// The steps after which a job validates. The first is one of them where there is an interval: its
// validation loss shows what the model knew at the start.
struct ValidatedSteps {
  int64_t interval = 0;  // 0: the last step only
  int64_t last = 0;

  bool Has(int64_t step) const {
    return step == last || (interval > 0 && (step == 1 || step % interval == 0));
  }
};

// True where experts are distributed over expert × tensor; false where the weights of each expert
// are sharded over tensor.
inline bool SpreadsExpertsOverTensor(const v1::ParallelismSpec& parallelism) {
  return parallelism.tensor_parallel_degree() > 1 &&
         parallelism.has_expert_tensor_parallel_degree() &&
         parallelism.expert_tensor_parallel_degree() == 1;
}

// Whether the ranks of tensor divide the rows between matmuls.
inline bool SplitsRowsOverTensor(const v1::ParallelismSpec& parallelism) {
  return parallelism.sequence_parallel() && parallelism.tensor_parallel_degree() > 1;
}

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_JOB_RULES_H_
