#include "data/dataset.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace troupe {
namespace {

Status ValidateOptions(const DatasetOptions& options) {
  if (options.train.empty()) return InvalidArgument("data.train is empty");
  if (options.sequence_length <= 0) {
    return InvalidArgument("training.sequence_length {} is not above 0", options.sequence_length);
  }
  if (options.global_batch_size <= 0) {
    return InvalidArgument("training.global_batch_size {} is not above 0",
                           options.global_batch_size);
  }
  if (options.vocab_size <= 0) {
    return InvalidArgument("model.vocab_size {} is not above 0", options.vocab_size);
  }
  // Written so that a NaN is refused too.
  if (!(options.validation_fraction >= 0 && options.validation_fraction < 1)) {
    return InvalidArgument("data.validation_fraction {} is not in [0, 1)",
                           options.validation_fraction);
  }
  if (!options.validation.empty() && options.validation_fraction > 0) {
    return InvalidArgument("data.validation \"{}\" and data.validation_fraction {} are both set",
                           options.validation, options.validation_fraction);
  }
  return OkStatus();
}

// Rows of T + 1 tokens that advance by T.
int64_t RowsIn(int64_t tokens, int64_t sequence_length) {
  return std::max<int64_t>(tokens - 1, 0) / sequence_length;
}

}  // namespace

StatusOr<Dataset> Dataset::Open(FileSystem& files, const DatasetOptions& options) {
  TROUPE_RETURN_IF_ERROR(ValidateOptions(options));
  Dataset dataset;
  dataset.options_ = options;
  TROUPE_ASSIGN_OR_RETURN(const IndexedDataset train, IndexedDataset::Open(files, options.train));
  const int64_t held_out = static_cast<int64_t>(
      std::nearbyint(options.validation_fraction * static_cast<double>(train.sequences())));
  std::tie(dataset.train_, dataset.validation_) = HoldOut(train, held_out);
  if (!options.validation.empty()) {
    TROUPE_ASSIGN_OR_RETURN(IndexedDataset separate,
                            IndexedDataset::Open(files, options.validation));
    dataset.validation_.emplace(std::move(separate));
  }

  const int64_t length = options.sequence_length;
  const int64_t rows = RowsIn(dataset.train_tokens(), length);
  if (rows == 0) {
    return InvalidArgument(
        "training.sequence_length {} is longer than the data: a sample takes {} tokens, data.train "
        "\"{}\" has {} for training",
        length, length + 1, options.train, dataset.train_tokens());
  }
  dataset.order_.emplace(options.seed, rows);

  const bool wants_validation = !options.validation.empty() || options.validation_fraction > 0;
  dataset.validation_samples_ = RowsIn(dataset.validation_tokens(), length);
  if (wants_validation && dataset.validation_samples_ == 0) {
    return InvalidArgument(
        "training.sequence_length {} is longer than the validation data: a sample takes {} tokens, "
        "there are {} ({} of {} sequences held out of \"{}\")",
        length, length + 1, dataset.validation_tokens(), held_out, train.sequences(),
        options.validation.empty() ? options.train : options.validation);
  }
  return dataset;
}

Status Dataset::Fill(const TokenStream& from, int64_t sample, const SampleRow& row) const {
  const size_t length = static_cast<size_t>(options_.sequence_length);
  TROUPE_CHECK(row.tokens.size() == length && row.targets.size() == length &&
               row.weights.size() == length && row.positions.size() == length);
  const int64_t position = sample * options_.sequence_length;
  TROUPE_RETURN_IF_ERROR(from.Read(position, options_.vocab_size, row.tokens));
  TROUPE_RETURN_IF_ERROR(from.Read(position + 1, options_.vocab_size, row.targets));
  std::fill(row.weights.begin(), row.weights.end(), 1.0f);
  std::iota(row.positions.begin(), row.positions.end(), 0);
  return OkStatus();
}

Status Dataset::Train(int64_t step, int64_t slot, const SampleRow& row) const {
  TROUPE_CHECK(step >= 1 && slot >= 0 && slot < options_.global_batch_size, "step {} slot {}", step,
               slot);
  const int64_t place = (step - 1) * options_.global_batch_size + slot;
  return Fill(*train_, order_->Row(place), row);
}

Status Dataset::Validation(int64_t index, const SampleRow& row) const {
  TROUPE_CHECK(index >= 0 && index < validation_samples_, "validation sample {} of {}", index,
               validation_samples_);
  return Fill(*validation_, index, row);
}

}  // namespace troupe
