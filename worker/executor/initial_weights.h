// A rank's first weights where the job's model comes from a Hugging Face directory.
#ifndef TROUPE_WORKER_EXECUTOR_INITIAL_WEIGHTS_H_
#define TROUPE_WORKER_EXECUTOR_INITIAL_WEIGHTS_H_

#include <cstdint>

#include "base/file_system.h"
#include "base/status.h"
#include "kernels/backend.h"
#include "model/program/program.h"
#include "troupe/v1/job.pb.h"

namespace troupe {

// The state before step 1: weights out of spec.model().from() where that is set, this rank's slices
// alone, else those of the seed; optimizer states 0. Of a directory, every header is checked against
// the model before a weight is read. Errors name file and tensor; after one nothing of the state may
// be used. REQUIRES: as in worker/executor/shards.h, memory of the host in the values' own dtypes.
Status LoadInitialWeights(FileSystem& files, const v1::JobSpec& spec,
                          const model::Program& program, kernels::Executable& executable);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_INITIAL_WEIGHTS_H_
