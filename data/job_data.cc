#include "data/job_data.h"

#include <limits>
#include <utility>
#include <vector>

#include "data/dataset_description.h"
#include "data/token_dataset.h"

namespace troupe {
namespace {

std::vector<std::pair<std::string, std::string>> FieldsAndPaths(const DatasetOptions& options) {
  std::vector<std::pair<std::string, std::string>> all;
  if (!options.train.empty()) all.emplace_back("data.train", options.train);
  for (size_t i = 0; i < options.blend.size(); ++i) {
    all.emplace_back(fmt::format("data.blend[{}].path", i), options.blend[i].path);
  }
  if (!options.validation.empty()) all.emplace_back("data.validation", options.validation);
  return all;
}

}  // namespace

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
  for (const auto& [field, path] : FieldsAndPaths(options)) paths.push_back(path);
  return paths;
}

std::string FieldToBlame(FileSystem& files, const DatasetOptions& options) {
  const auto fields = FieldsAndPaths(options);
  for (const auto& [field, path] : fields) {
    const auto dataset = TokenDataset::Open(files, path);
    if (!dataset.ok()) return field;
    const int64_t tokens = dataset->tokens().tokens();
    if (!CheckDescription(files, path, tokens, std::numeric_limits<int64_t>::max()).ok()) {
      return field;
    }
    if (!CheckDescription(files, path, tokens, options.vocab_size).ok()) return "model.vocab_size";
  }
  return "training.sequence_length";
}

}  // namespace troupe
