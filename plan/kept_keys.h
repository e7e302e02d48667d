// What training cannot change as it goes on: the model whose tensors a checkpoint holds, and whatever
// decides which sample comes at which step. The layout, the schedule of learning rates, the numerics
// and everything else may change. Pure.
#ifndef TROUPE_PLAN_KEPT_KEYS_H_
#define TROUPE_PLAN_KEPT_KEYS_H_

#include "base/status.h"
#include "troupe/v1/checkpoint.pb.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// For a job that is resumed with another spec. INVALID_ARGUMENT naming every key of `model` and
// `data`, and of training.seed, sequence_length, global_batch_size and optimizer.name, whose value in
// `after` differs from that in `before`, with both. REQUIRES: defaults are applied to both.
Status CheckKeptKeys(const v1::JobSpec& before, const v1::JobSpec& after);

// For a new job that begins with a checkpoint: what was trained goes on in `spec` with no sample
// repeated or left out. INVALID_ARGUMENT naming field, value and relation: a step that is not before
// training.steps, another seed, a global batch that does not give the samples taken so far, and,
// where the checkpoint has the spec of its job, another model or sequence length. Data are not
// compared: they may lie elsewhere now, or be others on purpose. A checkpoint of step 0 holds
// weights alone and goes with every training of its model. REQUIRES: a validated manifest, `spec` with its
// defaults.
Status CheckContinues(const v1::CheckpointManifest& manifest, const v1::JobSpec& spec);

}  // namespace troupe

#endif  // TROUPE_PLAN_KEPT_KEYS_H_
