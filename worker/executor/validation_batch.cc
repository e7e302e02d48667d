#include "worker/executor/validation_batch.h"

#include <algorithm>
#include <utility>

#include "base/failure_cause.h"
#include "base/sample_schema.h"

namespace troupe {

StatusOr<std::optional<SampleBatch>> ReadValidationBatch(const Dataset& dataset,
                                                         std::span<const ChannelForm> rows,
                                                         const BatchGeometry& batch, int data_rank,
                                                         int64_t samples) {
  samples = std::min(samples, dataset.validation_samples());
  if (samples <= 0) return std::optional<SampleBatch>();
  const int64_t per_round = batch.micro_batch_size * batch.data_ranks;
  const int64_t own = (samples + per_round - 1) / per_round * batch.micro_batch_size;
  SampleBatch read(rows, own, batch.sequence_length);
  for (int64_t row = 0; row < own; ++row) {
    const int64_t sample = data_rank * own + row;
    const SampleRow view = read.Row(row);
    const int64_t index = (sample % samples) * dataset.validation_samples() / samples;
    TROUPE_RETURN_IF_ERROR(WithCause(dataset.Validation(index, view), cause::kData));
    const std::span<float> weights = view.Float32s(channels::kWeights);
    if (sample >= samples) std::fill(weights.begin(), weights.end(), 0.0f);
  }
  return std::optional<SampleBatch>(std::move(read));
}

}  // namespace troupe
