// What a job trains on and validates on: rows of tokens by (step, slot), of one dataset or of several
// blended ones.
//
// A blend gives every place of training to one of its datasets (data/blend.h), in which it is the
// next sample in the order of data/sample_order.h: each dataset goes through each of its epochs
// whole, and nothing depends on the layout, on training.steps or on what was read before.
//
// The split cuts whole sequences: of the S sequences of each dataset int(round(validation_fraction ·
// S)) are held out (round half to even, as Megatron does), spread evenly over the file
// (data/token_stream.h); training sees none of them. They are read in the order of the file; of a
// blend as many rows of each dataset as its weight allows where none repeats, spread over its held
// out rows, dataset by dataset. A separate validation dataset takes the place of the split.
//
// With a document mask the documents packed into a row do not see each other: positions count from 0
// in each, a target of another document does not count, and each token knows where its document
// begins.
// Immutable, thread-safe; copies share the mapping.
#ifndef TROUPE_DATA_DATASET_H_
#define TROUPE_DATA_DATASET_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "base/sample_schema.h"
#include "base/status.h"
#include "data/blend.h"
#include "data/sample_order.h"
#include "data/sample_row.h"
#include "data/token_dataset.h"
#include "data/token_stream.h"

namespace troupe {

struct BlendPart {
  std::string path;
  double weight = 1;
};

struct DatasetOptions {
  std::string train;               // a path of data/token_dataset.h; empty: blend
  std::vector<BlendPart> blend;
  std::string validation;          // likewise a path; empty: validation_fraction of train or blend
  double validation_fraction = 0;  // in [0, 1)
  int64_t sequence_length = 0;     // T
  int64_t global_batch_size = 0;
  int64_t vocab_size = 0;
  uint64_t seed = 0;
  bool document_mask = false;
};

class Dataset {
 public:
  // INVALID_ARGUMENT naming both numbers where the training (or wanted validation) tokens of a
  // dataset hold no row of sequence_length + 1, or where data prepare wrote that a dataset has ids
  // up to more than vocab_size; errors of TokenDataset::Open.
  static StatusOr<Dataset> Open(FileSystem& files, const DatasetOptions& options);

  // The channels (base/sample_schema.h) that its rows give: tokens, targets and weights (1: the target
  // counts, else 0), with a document mask positions and documents too.
  const std::vector<ChannelForm>& channels() const { return channels_; }

  // What stands at step `step` (from 1) and `slot` (in [0, global_batch_size)).
  struct Origin {
    int64_t dataset;  // its number in the blend; 0 where there is one
    int64_t epoch;    // of that dataset
    int64_t row;      // of its training tokens: they begin at row · T
  };
  Origin OriginOf(int64_t step, int64_t slot) const;

  // Row of step `step` at `slot`. INVALID_ARGUMENT with file and position for a token not below
  // vocab_size. REQUIRES: `row` wants some of channels(), each with as many elements as a sample of T
  // tokens has.
  Status Train(int64_t step, int64_t slot, const SampleRow& row) const;

  // REQUIRES: index in [0, validation_samples()), a row as above.
  Status Validation(int64_t index, const SampleRow& row) const;

  int64_t datasets() const { return static_cast<int64_t>(parts_.size()); }
  const std::string& path(int64_t dataset) const { return Part(dataset).path; }
  // Of all datasets, until each has been gone through once.
  int64_t samples_per_epoch() const;
  int64_t samples_per_epoch(int64_t dataset) const { return Part(dataset).order.samples_per_epoch(); }
  // Its part of all samples.
  double share(int64_t dataset) const;
  int64_t validation_samples() const;
  int64_t train_tokens() const;
  int64_t validation_tokens() const;

 private:
  // Where documents end in a dataset's file; null without a document mask.
  using DocumentEnds = std::shared_ptr<const std::vector<int64_t>>;
  // One dataset that is trained on.
  struct Source {
    std::string path;
    TokenStream train;
    DocumentEnds documents;
    SampleOrder order;
  };
  // Rows that are validated on: `rows` of the `available` ones of `tokens`.
  struct HeldOut {
    TokenStream tokens;
    DocumentEnds documents;
    int64_t available;
    int64_t rows;
  };

  Dataset(DatasetOptions options, Blend blend);
  const Source& Part(int64_t dataset) const { return parts_[static_cast<size_t>(dataset)]; }
  Status AddSource(FileSystem& files, const std::string& path);
  void ShareOutValidation();
  DocumentEnds DocumentEndsOf(const TokenDataset& opened) const;
  Status Fill(const TokenStream& from, const DocumentEnds& documents, int64_t sample,
              const SampleRow& row) const;

  DatasetOptions options_;
  std::vector<ChannelForm> channels_;
  Blend blend_;
  std::vector<Source> parts_;
  std::vector<HeldOut> held_out_;
};

}  // namespace troupe

#endif  // TROUPE_DATA_DATASET_H_
