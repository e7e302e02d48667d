// What a job trains on and validates on: rows of tokens by (step, slot).
//
// The split cuts whole sequences: of S sequences int(round(validation_fraction · S)) are held out
// (round half to even, as Megatron does), spread evenly over the file (data/token_stream.h);
// training sees none of them. A separate validation dataset takes the place of the split. Training rows come in the order of
// data/sample_order.h, validation rows in the order of the file. Immutable, thread-safe; copies
// share the mapping.
#ifndef TROUPE_DATA_DATASET_H_
#define TROUPE_DATA_DATASET_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/file_system.h"
#include "base/status.h"
#include "data/sample_order.h"
#include "data/token_stream.h"

namespace troupe {

struct DatasetOptions {
  std::string train;               // prefix of .idx and .bin
  std::string validation;          // prefix; empty: validation_fraction of train
  double validation_fraction = 0;  // in [0, 1)
  int64_t sequence_length = 0;     // T
  int64_t global_batch_size = 0;
  int64_t vocab_size = 0;
  uint64_t seed = 0;
};

// One sample; every span has T elements.
struct SampleRow {
  std::span<int32_t> tokens;
  std::span<int32_t> targets;    // tokens shifted by one
  std::span<float> weights;      // 1: the target counts
  std::span<int32_t> positions;  // 0 … T - 1
};

class Dataset {
 public:
  // INVALID_ARGUMENT naming both numbers where the training (or wanted validation) tokens hold no
  // row of sequence_length + 1; errors of IndexedDataset::Open.
  static StatusOr<Dataset> Open(FileSystem& files, const DatasetOptions& options);

  // Row of step `step` (from 1) at `slot` (in [0, global_batch_size)). INVALID_ARGUMENT with file
  // and position for a token not below vocab_size. REQUIRES: spans of T elements.
  Status Train(int64_t step, int64_t slot, const SampleRow& row) const;

  // REQUIRES: index in [0, validation_samples()), spans of T elements.
  Status Validation(int64_t index, const SampleRow& row) const;

  int64_t samples_per_epoch() const { return order_->samples_per_epoch(); }
  int64_t validation_samples() const { return validation_samples_; }
  int64_t train_tokens() const { return train_->tokens(); }
  int64_t validation_tokens() const { return validation_->tokens(); }

 private:
  Dataset() = default;
  Status Fill(const TokenStream& from, int64_t sample, const SampleRow& row) const;

  DatasetOptions options_;
  std::optional<TokenStream> train_;
  std::optional<TokenStream> validation_;
  std::optional<SampleOrder> order_;
  int64_t validation_samples_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_DATA_DATASET_H_
