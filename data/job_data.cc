#include "data/job_data.h"

#include "data/indexed_dataset.h"

namespace troupe {

DatasetOptions MakeDatasetOptions(const v1::JobSpec& spec) {
  return {.train = spec.data().train(),
          .validation = spec.data().validation(),
          .validation_fraction = spec.data().validation_fraction(),
          .sequence_length = spec.training().sequence_length(),
          .global_batch_size = spec.training().global_batch_size(),
          .vocab_size = spec.model().vocab_size(),
          .seed = spec.training().seed()};
}

std::string FieldToBlame(FileSystem& files, const DatasetOptions& options) {
  if (!IndexedDataset::Open(files, options.train).ok()) return "data.train";
  if (!options.validation.empty() && !IndexedDataset::Open(files, options.validation).ok()) {
    return "data.validation";
  }
  return "training.sequence_length";
}

}  // namespace troupe
