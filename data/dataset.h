// The training and validation data of a job: rows of tokens by (step, slot), from one dataset or
// from a blend of several.
//
// A blend assigns every position of training to one of its datasets (data/blend.h), which provides
// its next sample in the order of data/sample_order.h. Each dataset completes each of its epochs,
// and nothing depends on the layout, on training.steps or on what was read before.
//
// The split is by whole sequences. Of the S sequences of each dataset,
// int(round(validation_fraction · S)) are held out (round half to even, as in Megatron), spread
// evenly over the file (data/token_stream.h); training never reads them. Validation reads them in
// file order. In a blend, each dataset contributes as many held-out rows as its weight allows
// without repetition, spread over its held-out rows; the datasets follow each other. A separate
// validation dataset replaces the split.
//
// With a document mask the documents packed into a row do not attend to each other: positions
// restart at 0 in each document, a target from another document does not count, and each token has
// the offset at which its document begins.
//
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
  std::string train;  // a path as in data/token_dataset.h; empty: blend
  std::vector<BlendPart> blend;
  std::string validation;          // a path likewise; empty: validation_fraction of train or blend
  double validation_fraction = 0;  // in [0, 1)
  int64_t sequence_length = 0;     // T
  int64_t global_batch_size = 0;
  int64_t vocab_size = 0;
  uint64_t seed = 0;
  bool document_mask = false;
};

// Returns the job key that causes Dataset::Open to fail with `status`: data.train,
// data.blend[i].path or data.validation if its files cannot be used; model.vocab_size if it is
// below that of a dataset's tokenizer; training.sequence_length if the data are too short.
std::string KeyToBlame(const Status& status);

class Dataset {
 public:
  // INVALID_ARGUMENT names both numbers if the training (or requested validation) tokens of a
  // dataset have no row of sequence_length + 1, or if the description from `data prepare` states a
  // vocabulary larger than vocab_size. INVALID_ARGUMENT also if two paths of a blend lead to the
  // same file of tokens, or if no token of a dataset, or of all that is held out, has a target that
  // counts. Other errors: as TokenDataset::Open.
  static StatusOr<Dataset> Open(FileSystem& files, const DatasetOptions& options);

  // Returns the channels (base/sample_schema.h) that the rows provide: tokens, targets and weights
  // (1 if the target counts, else 0), and with a document mask also positions and documents.
  const std::vector<ChannelForm>& channels() const { return channels_; }

  // The source of the sample at step `step` (from 1) and `slot` (in [0, global_batch_size)).
  struct Origin {
    int64_t dataset;  // index in the blend; 0 without a blend
    int64_t epoch;    // epoch of that dataset
    int64_t row;      // index of the row in its training tokens: it begins at row · T
  };
  Origin OriginOf(int64_t step, int64_t slot) const;

  // Fills `row` with the sample of step `step` at `slot`. INVALID_ARGUMENT names file and position
  // for a token not below vocab_size. REQUIRES: `row` requests some of channels(), each with the
  // elements of a sample of T tokens.
  Status Train(int64_t step, int64_t slot, const SampleRow& row) const;

  // Fills `row` with validation sample `index`. REQUIRES: index in [0, validation_samples()), a row
  // as above.
  Status Validation(int64_t index, const SampleRow& row) const;

  // A dataset that is read for training or validation.
  struct Opened {
    std::string key;  // the job's: "data.train", "data.blend[3].path", "data.validation"
    std::string path;
    TokenDataset data;
    std::optional<std::string> description;  // the text of its file (data/dataset_description.h)
  };
  // Returns those of the blend in its order, then the separate one for validation.
  const std::vector<Opened>& opened() const { return opened_; }

  int64_t datasets() const { return static_cast<int64_t>(parts_.size()); }
  const std::string& path(int64_t dataset) const { return Part(dataset).path; }
  // Returns the total over all datasets, that is, until each has been read once.
  int64_t samples_per_epoch() const;
  int64_t samples_per_epoch(int64_t dataset) const {
    return Part(dataset).order.samples_per_epoch();
  }
  // Returns the fraction of all samples that come from `dataset`.
  double share(int64_t dataset) const;
  int64_t validation_samples() const;
  int64_t train_tokens() const;
  int64_t validation_tokens() const;

 private:
  // The ends of the documents in a dataset's file; null without a document mask.
  using DocumentEnds = std::shared_ptr<const std::vector<int64_t>>;
  // One training dataset.
  struct Source {
    std::string path;
    TokenStream train;
    DocumentEnds documents;
    SampleOrder order;
  };
  // Held-out rows of one dataset: validation reads `rows` of the `available` rows of `tokens`.
  struct HeldOut {
    TokenStream tokens;
    DocumentEnds documents;
    int64_t available;
    int64_t rows;
  };

  Dataset(DatasetOptions options, Blend blend);
  const Source& Part(int64_t dataset) const { return parts_[static_cast<size_t>(dataset)]; }
  Status AddOpened(FileSystem& files, std::string key, const std::string& path);
  // Adds the newest opened dataset to those that are trained on.
  Status AddSource();
  // Adds it as the dataset that is validated on.
  Status AddValidation();
  void ShareOutValidation();
  Status CheckTargets() const;
  // Whether a target of the first `rows` rows counts.
  bool HasTarget(const TokenStream& from, const DocumentEnds& documents, int64_t rows) const;
  DocumentEnds DocumentEndsOf(const TokenDataset& opened) const;
  Status Fill(const TokenStream& from, const DocumentEnds& documents, int64_t sample,
              const SampleRow& row) const;

  DatasetOptions options_;
  std::vector<ChannelForm> channels_;
  Blend blend_;
  std::vector<Opened> opened_;
  std::vector<Source> parts_;
  std::vector<HeldOut> held_out_;
};

}  // namespace troupe

#endif  // TROUPE_DATA_DATASET_H_
