// The numbers of a job's frozen parameters, which none of its own checkpoints has.
#ifndef TROUPE_WORKER_EXECUTOR_FROZEN_WEIGHTS_H_
#define TROUPE_WORKER_EXECUTOR_FROZEN_WEIGHTS_H_

#include "base/status.h"
#include "interop/base_weights.h"
#include "kernels/backend/value_memory.h"
#include "model/program/program.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Opens the model of the job's checkpoint.initial_load if that is set, else that of model.from.
// Errors are those of BaseWeights::Open with the key; one of a folder that may be away has cause
// STORAGE (worker/executor/folder_fault.h). REQUIRES: the job freezes parameters
// (v1::Plan has trained_parameters).
StatusOr<BaseWeights> OpenBase(const BaseFiles& files, const v1::JobSpec& spec);

// Fills this rank's frozen parameters from that model, rounded to their dtype. Errors as above, and
// those of BaseWeights::Load; after one the parameters must not be used.
Status LoadFrozenWeights(const BaseFiles& files, const v1::JobSpec& spec,
                         const model::Program& program, kernels::ValueMemory& values);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_FROZEN_WEIGHTS_H_
