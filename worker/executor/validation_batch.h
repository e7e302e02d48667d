// The held-out samples of one data rank.
#ifndef TROUPE_WORKER_EXECUTOR_VALIDATION_BATCH_H_
#define TROUPE_WORKER_EXECUTOR_VALIDATION_BATCH_H_

#include <cstdint>
#include <optional>
#include <span>

#include "base/status.h"
#include "data/dataset.h"
#include "data/sample_batch.h"
#include "plan/batch.h"

namespace troupe {

// Data rank `data_rank`'s part of `samples` held-out samples, or of all where there are fewer, spread evenly over what is
// held out: whole microbatches, equally many on each rank, those beyond the last sample with weight 0. Absent where there
// are none. The dataset's error.
StatusOr<std::optional<SampleBatch>> ReadValidationBatch(const Dataset& dataset,
                                                         std::span<const ChannelForm> rows,
                                                         const BatchGeometry& batch, int data_rank,
                                                         int64_t samples);

}  // namespace troupe

#endif  // TROUPE_WORKER_EXECUTOR_VALIDATION_BATCH_H_
