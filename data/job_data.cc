#include "data/job_data.h"

namespace troupe {

DatasetOptions MakeDatasetOptions(const v1::JobSpec& spec) {
  DatasetOptions options{.train = spec.data().train(),
                         .validation = spec.data().validation(),
                         .validation_fraction = spec.data().validation_fraction(),
                         .sequence_length = spec.training().sequence_length(),
                         .global_batch_size = spec.training().global_batch_size(),
                         .vocab_size = spec.model().vocab_size(),
                         .seed = spec.training().seed(),
                         .document_mask = spec.data().document_mask()};
  for (const auto& entry : spec.data().blend()) {
    options.blend.push_back({entry.path(), entry.weight()});
  }
  return options;
}

std::vector<std::string> DataPaths(const DatasetOptions& options) {
  std::vector<std::string> paths;
  if (!options.train.empty()) paths.push_back(options.train);
  for (const BlendPart& part : options.blend) paths.push_back(part.path);
  if (!options.validation.empty()) paths.push_back(options.validation);
  return paths;
}

}  // namespace troupe
