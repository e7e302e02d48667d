#include "data/dataset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "base/check.h"
#include "data/dataset_description.h"
#include "data/token_dataset.h"

namespace troupe {
namespace {

Status ValidateOptions(const DatasetOptions& options) {
  if (options.train.empty() == options.blend.empty()) {
    return InvalidArgument("data.train {}", options.train.empty()
                                                ? "is empty"
                                                : "and data.blend are both set: state one of them");
  }
  if (std::ssize(options.blend) > Blend::kDatasetsMax) {
    return InvalidArgument("data.blend has {} entries, above the limit of {}", options.blend.size(),
                           Blend::kDatasetsMax);
  }
  double sum = 0;
  for (const BlendPart& part : options.blend) sum += part.weight;
  for (size_t i = 0; i < options.blend.size(); ++i) {
    // The condition is written so that a NaN is refused too.
    if (!(options.blend[i].weight >= sum / Blend::kPeriodMax && sum > 0 && std::isfinite(sum))) {
      return InvalidArgument("data.blend[{}].weight {} is not at least 2^-20 of the sum {}", i,
                             options.blend[i].weight, sum);
    }
  }
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

Blend MakeBlend(const DatasetOptions& options) {
  std::vector<double> weights;
  for (const BlendPart& part : options.blend) weights.push_back(part.weight);
  if (weights.empty()) weights = {1};
  return Blend(weights);
}

// Returns the number of rows of T + 1 tokens with stride T.
int64_t RowsIn(int64_t tokens, int64_t sequence_length) {
  return std::max<int64_t>(tokens - 1, 0) / sequence_length;
}

StatusOr<TokenDataset> OpenChecked(FileSystem& files, const std::string& path, int64_t vocab_size) {
  TROUPE_ASSIGN_OR_RETURN(TokenDataset dataset, TokenDataset::Open(files, path));
  TROUPE_RETURN_IF_ERROR(CheckDescription(files, path, dataset.tokens().tokens(), vocab_size));
  return dataset;
}

}  // namespace

Dataset::Dataset(DatasetOptions options, Blend blend)
    : options_(std::move(options)), blend_(std::move(blend)) {
  const auto give = [this](std::string_view name, ChannelType type) {
    channels_.push_back({std::string(name), type, ChannelExtent::kToken, 1});
  };
  give(channels::kTokens, ChannelType::kInt32);
  give(channels::kTargets, ChannelType::kInt32);
  give(channels::kWeights, ChannelType::kFloat32);
  if (!options_.document_mask) return;
  give(channels::kPositions, ChannelType::kInt32);
  give(channels::kDocuments, ChannelType::kInt32);
}

StatusOr<Dataset> Dataset::Open(FileSystem& files, const DatasetOptions& options) {
  TROUPE_RETURN_IF_ERROR(ValidateOptions(options));
  Dataset dataset(options, MakeBlend(options));
  if (options.blend.empty()) {
    TROUPE_RETURN_IF_ERROR(dataset.AddSource(files, options.train));
  }
  for (const BlendPart& part : options.blend) {
    TROUPE_RETURN_IF_ERROR(dataset.AddSource(files, part.path));
  }
  if (options.validation_fraction > 0) dataset.ShareOutValidation();
  if (!options.validation.empty()) {
    TROUPE_ASSIGN_OR_RETURN(const TokenDataset separate,
                            OpenChecked(files, options.validation, options.vocab_size));
    const int64_t rows = RowsIn(separate.tokens().tokens(), options.sequence_length);
    if (rows == 0) {
      return InvalidArgument(
          "training.sequence_length {} is longer than the validation data: a sample takes {} "
          "tokens, there are {} in \"{}\"",
          options.sequence_length, options.sequence_length + 1, separate.tokens().tokens(),
          options.validation);
    }
    dataset.held_out_.push_back(
        {TokenStream(separate.tokens()), dataset.DocumentEndsOf(separate), rows, rows});
  }
  return dataset;
}

Status Dataset::AddSource(FileSystem& files, const std::string& path) {
  TROUPE_ASSIGN_OR_RETURN(const TokenDataset opened, OpenChecked(files, path, options_.vocab_size));
  const int64_t length = options_.sequence_length;
  const DocumentEnds documents = DocumentEndsOf(opened);
  TokenStream train(opened.tokens());
  if (options_.validation_fraction > 0) {
    const std::vector<int64_t> ends = opened.SequenceEnds();
    const int64_t held_out = static_cast<int64_t>(
        std::nearbyint(options_.validation_fraction * static_cast<double>(ends.size())));
    auto split = HoldOut(opened.tokens(), ends, held_out);
    train = std::move(split.first);
    const int64_t rows = RowsIn(split.second.tokens(), length);
    if (rows == 0) {
      return InvalidArgument(
          "training.sequence_length {} is longer than the validation data: a sample takes {} "
          "tokens, there are {} ({} of {} sequences held out of \"{}\")",
          length, length + 1, split.second.tokens(), held_out, ends.size(), path);
    }
    held_out_.push_back({std::move(split.second), documents, rows, rows});
  }
  const int64_t rows = RowsIn(train.tokens(), length);
  if (rows == 0) {
    return InvalidArgument(
        "training.sequence_length {} is longer than the data: a sample takes {} tokens, {} \"{}\" "
        "has {} for training",
        length, length + 1, options_.blend.empty() ? "data.train" : "data.blend", path,
        train.tokens());
  }
  parts_.push_back(
      {path, std::move(train), documents, SampleOrder(options_.seed, rows, datasets())});
  return OkStatus();
}

void Dataset::ShareOutValidation() {
  // Finds the largest number of blend positions at which no dataset is chosen more often than it
  // has rows.
  const auto fits = [&](int64_t places) {
    for (int64_t d = 0; d < datasets(); ++d) {
      if (blend_.Count(d, places) > held_out_[static_cast<size_t>(d)].available) return false;
    }
    return true;
  };
  int64_t places = 0;
  for (const HeldOut& part : held_out_) places += part.available;  // upper bound
  int64_t least = 0;
  while (least < places) {
    const int64_t middle = least + (places - least + 1) / 2;
    fits(middle) ? least = middle : places = middle - 1;
  }
  for (int64_t d = 0; d < datasets(); ++d) {
    held_out_[static_cast<size_t>(d)].rows = blend_.Count(d, places);
  }
}

int64_t Dataset::samples_per_epoch() const {
  int64_t samples = 0;
  for (const Source& part : parts_) samples += part.order.samples_per_epoch();
  return samples;
}

double Dataset::share(int64_t dataset) const {
  return static_cast<double>(blend_.share(dataset)) / static_cast<double>(blend_.period());
}

int64_t Dataset::validation_samples() const {
  int64_t samples = 0;
  for (const HeldOut& part : held_out_) samples += part.rows;
  return samples;
}

int64_t Dataset::train_tokens() const {
  int64_t tokens = 0;
  for (const Source& part : parts_) tokens += part.train.tokens();
  return tokens;
}

int64_t Dataset::validation_tokens() const {
  int64_t tokens = 0;
  for (const HeldOut& part : held_out_) tokens += part.tokens.tokens();
  return tokens;
}

Dataset::DocumentEnds Dataset::DocumentEndsOf(const TokenDataset& opened) const {
  if (!options_.document_mask) return nullptr;
  return std::make_shared<const std::vector<int64_t>>(opened.DocumentEnds());
}

Status Dataset::Fill(const TokenStream& from, const DocumentEnds& documents, int64_t sample,
                     const SampleRow& row) const {
  const size_t length = static_cast<size_t>(options_.sequence_length);
  const std::span<int32_t> tokens = row.Int32s(channels::kTokens);
  const std::span<int32_t> targets = row.Int32s(channels::kTargets);
  const std::span<float> weights = row.Float32s(channels::kWeights);
  const std::span<int32_t> positions = row.Int32s(channels::kPositions);
  const std::span<int32_t> starts = row.Int32s(channels::kDocuments);
  for (const size_t wanted :
       {tokens.size(), targets.size(), weights.size(), positions.size(), starts.size()}) {
    TROUPE_CHECK(wanted == length || wanted == 0, "{} elements for {} tokens", wanted, length);
  }
  TROUPE_CHECK(documents != nullptr || (positions.empty() && starts.empty()),
               "without a document mask rows have neither positions nor documents");
  const int64_t position = sample * options_.sequence_length;
  if (!tokens.empty()) {
    TROUPE_RETURN_IF_ERROR(from.Read(position, options_.vocab_size, tokens));
  }
  if (!targets.empty()) {
    TROUPE_RETURN_IF_ERROR(from.Read(position + 1, options_.vocab_size, targets));
  }
  std::fill(weights.begin(), weights.end(), 1.0f);
  if (documents == nullptr) return OkStatus();
  std::vector<int32_t> begins(length + 1);
  from.DocumentStarts(position, *documents, begins);
  for (size_t i = 0; i < length; ++i) {
    if (!starts.empty()) starts[i] = begins[i];
    if (!positions.empty()) positions[i] = static_cast<int32_t>(i) - begins[i];
    if (!weights.empty() && begins[i + 1] != begins[i]) weights[i] = 0.0f;
  }
  return OkStatus();
}

Dataset::Origin Dataset::OriginOf(int64_t step, int64_t slot) const {
  TROUPE_CHECK(step >= 1 && slot >= 0 && slot < options_.global_batch_size, "step {} slot {}", step,
               slot);
  const Blend::Choice choice = blend_.At((step - 1) * options_.global_batch_size + slot);
  const SampleOrder& order = Part(choice.dataset).order;
  return {choice.dataset, choice.sample / order.samples_per_epoch(), order.Row(choice.sample)};
}

Status Dataset::Train(int64_t step, int64_t slot, const SampleRow& row) const {
  const Origin origin = OriginOf(step, slot);
  const Source& part = Part(origin.dataset);
  return Fill(part.train, part.documents, origin.row, row);
}

Status Dataset::Validation(int64_t index, const SampleRow& row) const {
  TROUPE_CHECK(index >= 0 && index < validation_samples(), "validation sample {} of {}", index,
               validation_samples());
  for (const HeldOut& part : held_out_) {
    if (index < part.rows) {
      return Fill(part.tokens, part.documents, index * part.available / part.rows, row);
    }
    index -= part.rows;
  }
  TROUPE_CHECK(false, "validation rows end early");
  return OkStatus();
}

}  // namespace troupe
