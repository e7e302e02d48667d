// Checks the keys that cannot change when training continues: the model whose tensors a checkpoint
// holds, and everything that decides which sample is used at which step. The layout, the
// learning-rate schedule, the numerics and everything else may change. Pure.
#ifndef TROUPE_PLAN_JOB_KEPT_KEYS_H_
#define TROUPE_PLAN_JOB_KEPT_KEYS_H_

#include "base/status.h"
#include "troupe/v1/checkpoint.pb.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Check for a job that is resumed with another spec. INVALID_ARGUMENT naming, with both values,
// every key of `model` and `data`, and of training.seed, sequence_length, global_batch_size and
// optimizer.name, that differs between `before` and `after`, and optimizer.momentum if it is 0 in
// one of them only. REQUIRES: defaults are applied to both.
Status CheckKeptKeys(const v1::JobSpec& before, const v1::JobSpec& after);

// Check for a new job that starts from a checkpoint: training continues in `spec` with no sample
// repeated or left out. INVALID_ARGUMENT naming field, value and relation: a step that is not
// before training.steps, another seed, a global batch size that does not give the number of samples
// consumed so far, and, where the checkpoint contains the spec of its job, another model,
// optimizer or sequence length. Data is not compared: it may be stored elsewhere now, or differ on
// purpose. A checkpoint of step 0 holds weights only and fits any training of its model. REQUIRES:
// `manifest` is validated, `spec` has its defaults.
Status CheckContinues(const v1::CheckpointManifest& manifest, const v1::JobSpec& spec);

}  // namespace troupe

#endif  // TROUPE_PLAN_JOB_KEPT_KEYS_H_
