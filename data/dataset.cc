#include "data/dataset.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "absl/strings/cord.h"
#include "base/check.h"
#include "data/dataset_description.h"
#include "data/token_dataset.h"

namespace troupe {
namespace {

constexpr char kKeyUrl[] = "troupe/data-key";

// Attaches the job key to blame, which KeyToBlame returns.
Status Blame(Status status, const std::string& key) {
  status.SetPayload(kKeyUrl, absl::Cord(key));
  return status;
}

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

// Refuses two paths of a blend that lead to the same file: its rows would be read in two orders,
// and more often than either weight states.
Status CheckAreDifferent(FileSystem& files, const std::vector<Dataset::Opened>& blend) {
  std::map<std::pair<uint64_t, uint64_t>, const Dataset::Opened*> first_with;
  for (const Dataset::Opened& opened : blend) {
    const StatusOr<FileInfo> info = files.Stat(opened.data.tokens().path(), SymbolicLinks::kFollow);
    if (!info.ok()) return Blame(info.status(), opened.key);
    const auto [first, is_new] = first_with.emplace(std::pair(info->device, info->inode), &opened);
    if (is_new) continue;
    return Blame(InvalidArgument(
                     "{} {} has the same file of tokens as {} {}: state one path, with the sum of "
                     "both weights",
                     opened.key, opened.path, first->second->key, first->second->path),
                 opened.key);
  }
  return OkStatus();
}

}  // namespace

std::string KeyToBlame(const Status& status) {
  const auto key = status.GetPayload(kKeyUrl);
  return key ? std::string(*key) : "training.sequence_length";
}

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
    TROUPE_RETURN_IF_ERROR(dataset.AddOpened(files, "data.train", options.train));
    TROUPE_RETURN_IF_ERROR(dataset.AddSource());
  }
  for (size_t i = 0; i < options.blend.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(
        dataset.AddOpened(files, fmt::format("data.blend[{}].path", i), options.blend[i].path));
    TROUPE_RETURN_IF_ERROR(dataset.AddSource());
  }
  if (!options.blend.empty()) TROUPE_RETURN_IF_ERROR(CheckAreDifferent(files, dataset.opened_));
  if (options.validation_fraction > 0) dataset.ShareOutValidation();
  if (!options.validation.empty()) {
    TROUPE_RETURN_IF_ERROR(dataset.AddOpened(files, "data.validation", options.validation));
    TROUPE_RETURN_IF_ERROR(dataset.AddValidation());
  }
  TROUPE_RETURN_IF_ERROR(dataset.CheckTargets());
  return dataset;
}

Status Dataset::AddOpened(FileSystem& files, std::string key, const std::string& path) {
  StatusOr<TokenDataset> opened = TokenDataset::Open(files, path);
  if (!opened.ok()) return Blame(opened.status(), key);
  const int64_t tokens = opened->tokens().tokens();
  StatusOr<std::optional<std::string>> text = ReadDescription(files, path);
  if (!text.ok()) return Blame(text.status(), key);
  if (*text) {
    const Status described = CheckDescription(**text, path, tokens, options_.vocab_size);
    constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
    const bool is_of_vocabulary = CheckDescription(**text, path, tokens, kAny).ok();
    if (!described.ok()) return Blame(described, is_of_vocabulary ? "model.vocab_size" : key);
  }
  opened_.push_back({std::move(key), path, *std::move(opened), *std::move(text)});
  return OkStatus();
}

Status Dataset::AddValidation() {
  const TokenDataset& separate = opened_.back().data;
  const int64_t rows = RowsIn(separate.tokens().tokens(), options_.sequence_length);
  if (rows == 0) {
    return InvalidArgument(
        "training.sequence_length {} is longer than the validation data: a sample takes {} "
        "tokens, there are {} in \"{}\"",
        options_.sequence_length, options_.sequence_length + 1, separate.tokens().tokens(),
        opened_.back().path);
  }
  held_out_.push_back({TokenStream(separate.tokens()), DocumentEndsOf(separate), rows, rows});
  return OkStatus();
}

Status Dataset::AddSource() {
  const TokenDataset& opened = opened_.back().data;
  const std::string& path = opened_.back().path;
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

Status Dataset::CheckTargets() const {
  const auto refuse = [](const Opened& opened, std::string_view where) {
    return Blame(
        InvalidArgument("{} {} has no target{}: no document there has two tokens in a row, and "
                        "with data.document_mask the last token of a document has no target",
                        opened.key, opened.path, where),
        opened.key);
  };
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Source& part = parts_[i];
    if (!HasTarget(part.train, part.documents, part.order.samples_per_epoch()))
      return refuse(opened_[i], "");
  }
  const bool has_any = std::any_of(held_out_.begin(), held_out_.end(), [&](const HeldOut& part) {
    return HasTarget(part.tokens, part.documents, part.available);
  });
  if (held_out_.empty() || has_any) return OkStatus();
  return options_.validation.empty() ? refuse(opened_.front(), " in what is held out of it")
                                     : refuse(opened_.back(), "");
}

bool Dataset::HasTarget(const TokenStream& from, const DocumentEnds& documents,
                        int64_t rows) const {
  if (documents == nullptr) return true;
  std::vector<float> weights(static_cast<size_t>(options_.sequence_length));
  SampleRow row;
  row.Add(channels::kWeights, weights);
  for (int64_t sample = 0; sample < rows; ++sample) {
    // Without tokens and targets nothing is read that could fail.
    TROUPE_CHECK_OK(Fill(from, documents, sample, row));
    if (std::any_of(weights.begin(), weights.end(), [](float weight) { return weight > 0; }))
      return true;
  }
  return false;
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
