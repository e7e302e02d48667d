// A rank's initial weights if the job's model comes from a Hugging Face directory.
#ifndef TROUPE_WORKER_EXECUTOR_INITIAL_WEIGHTS_H_
#define TROUPE_WORKER_EXECUTOR_INITIAL_WEIGHTS_H_

#include <cstdint>

#include "base/file_system.h"
#include "base/status.h"
#include "kernels/backend/value_memory.h"
#include "model/program/program.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// Fills the state before step 1: this rank's slices of the weights in spec.model().from() if that
// is set, else weights from the seed; optimizer states are 0. For a directory, every header is
// checked against the model before a weight is read. Errors name file and tensor; one of a
// directory that may be away has cause STORAGE (worker/executor/folder_fault.h). After an error the
// state must not be used. REQUIRES: as in worker/executor/shards.h, host memory in the values' own
// dtypes.
Status LoadInitialWeights(FileSystem& files, const v1::JobSpec& spec, const model::Program& program,
                          kernels::ValueMemory& values);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_INITIAL_WEIGHTS_H_
