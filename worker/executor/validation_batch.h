// The held-out samples of one data rank.
#ifndef TROUPE_WORKER_EXECUTOR_VALIDATION_BATCH_H_
#define TROUPE_WORKER_EXECUTOR_VALIDATION_BATCH_H_

#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "data/dataset.h"
#include "data/sample_batch.h"
#include "plan/validate/batch.h"

namespace troupe {

// Reads the part of data rank `data_rank` of `samples` held-out samples (or all, if there are
// fewer), spread evenly over the held-out set. The batch has whole microbatches, the same number on
// each rank; rows beyond the last sample have weight 0. Absent if there are no held-out samples.
// Returns the dataset's error.
StatusOr<std::optional<SampleBatch>> ReadValidationBatch(const Dataset& dataset,
                                                         std::span<const ChannelForm> rows,
                                                         const BatchGeometry& batch, int data_rank,
                                                         int64_t samples);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_VALIDATION_BATCH_H_
