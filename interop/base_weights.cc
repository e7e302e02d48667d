#include "interop/base_weights.h"

#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <utility>

#include "base/text_file.h"
#include "checkpoint/format/digest.h"
#include "checkpoint/format/manifest.h"

namespace troupe {
namespace {

constexpr size_t kModelsMax = 16;

std::string Text(const v1::BaseIdentity& identity) {
  std::vector<std::string> files;
  for (const v1::DataFileIdentity& file : identity.files())
    files.push_back(fmt::format("{} of {} bytes ({})", file.name(), file.bytes(), file.digest()));
  return fmt::format("{}", fmt::join(files, ", "));
}

bool AreSame(v1::BaseIdentity a, v1::BaseIdentity b) {
  // The files decide; key and path are for messages.
  for (v1::BaseIdentity* const identity : {&a, &b}) {
    identity->clear_key();
    identity->clear_path();
  }
  return google::protobuf::util::MessageDifferencer::Equals(a, b);
}

}  // namespace

StatusOr<BaseWeights> BaseWeights::Open(const BaseFiles& files, const std::string& key,
                                        const std::string& path) {
  BaseWeights weights;
  v1::BaseIdentity next;
  next.set_key(key);
  next.set_path(path);
  while (weights.layers_.size() < kModelsMax) {
    v1::BaseIdentity found;
    found.set_key(next.key());
    found.set_path(next.path());
    if (next.key() == kBaseDirectory) {
      TROUPE_ASSIGN_OR_RETURN(HfWeights directory, HfWeights::Open(files.imports, next.path()));
      TROUPE_ASSIGN_OR_RETURN(*found.mutable_files(), directory.Identity());
      weights.layers_.emplace_back(std::move(directory));
    } else {
      TROUPE_ASSIGN_OR_RETURN(Checkpoint layer, OpenCheckpoint(files.checkpoints, &found));
      weights.layers_.emplace_back(std::move(layer));
    }
    if (weights.layers_.size() == 1) {
      weights.identity_ = found;
    } else {
      TROUPE_RETURN_IF_ERROR(
          CheckSameBase(next, "the checkpoint that was trained on it had", found, "now there is"));
    }
    const auto* const layer = std::get_if<Checkpoint>(&weights.layers_.back());
    if (layer == nullptr || !layer->manifest.has_base()) return weights;
    next = layer->manifest.base();
  }
  return InvalidArgument("{} is a checkpoint with more than {} bases, one on the other", path,
                         kModelsMax - 1);
}

StatusOr<BaseWeights::Checkpoint> BaseWeights::OpenCheckpoint(FileSystem& files,
                                                              v1::BaseIdentity* identity) {
  const std::string path = JoinPath(identity->path(), kManifestFileName);
  TROUPE_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(files, path, kManifestBytesMax, SymbolicLinks::kRefuse));
  StatusOr<v1::CheckpointManifest> manifest = ManifestFromJson(text);
  if (!manifest.ok()) return Annotate(manifest.status(), path);
  v1::DataFileIdentity& file = *identity->add_files();
  file.set_name(kManifestFileName);
  file.set_bytes(std::ssize(text));
  file.set_digest(Sha256Of(AsBytes(text)));
  Checkpoint checkpoint = {&files, identity->path(), *std::move(manifest), {}};
  for (const v1::ShardFile& shard : checkpoint.manifest.shards()) {
    for (const v1::TensorSlice& tensor : shard.tensors()) checkpoint.tensors.insert(tensor.name());
  }
  return checkpoint;
}

Status BaseWeights::Load(std::span<const LoadTarget> targets) const {
  std::vector<LoadTarget> left(targets.begin(), targets.end());
  for (const auto& layer : layers_) {
    if (const auto* const directory = std::get_if<HfWeights>(&layer)) {
      for (const LoadTarget& target : left) {
        const GlobalSlice& slice = target.slice;
        const std::span<float> numbers = {reinterpret_cast<float*>(target.data.data()),
                                          target.data.size() / sizeof(float)};
        TROUPE_RETURN_IF_ERROR(directory->Read(slice.name, slice.global_shape, slice.box, numbers));
      }
      return OkStatus();
    }
    const auto& checkpoint = std::get<Checkpoint>(layer);
    const auto others = std::stable_partition(
        left.begin(), left.end(), [&](const LoadTarget& target) { return checkpoint.Has(target); });
    const std::span<const LoadTarget> own(left.begin(), others);
    TROUPE_RETURN_IF_ERROR(
        LoadSlices(*checkpoint.files, checkpoint.directory, checkpoint.manifest, own));
    left.erase(left.begin(), others);
  }
  if (left.empty()) return OkStatus();
  return NotFound("{} has no tensor {}", identity_.path(), left.front().slice.name);
}

Status CheckSameBase(const v1::BaseIdentity& wanted, const std::string& wanted_by,
                     const v1::BaseIdentity& found, const std::string& found_by) {
  if (AreSame(wanted, found)) return OkStatus();
  return FailedPrecondition("{} {} is not the same model: {} {}; {} {}", found.key(), found.path(),
                            wanted_by, Text(wanted), found_by, Text(found));
}

}  // namespace troupe
