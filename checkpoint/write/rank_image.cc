#include "checkpoint/write/rank_image.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/durable_write.h"
#include "checkpoint/format/digest.h"
#include "checkpoint/format/manifest.h"

namespace troupe {
namespace {

constexpr char kDescriptionName[] = "image.json";
constexpr int kImageFormatVersion = 1;
constexpr int64_t kDescriptionBytesMax = int64_t{512} << 20;

StatusOr<std::string> ToJson(const v1::ImageManifest& manifest) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(manifest, &json, options);
  if (!status.ok()) return Internal("image to JSON: {}", status.ToString());
  return json;
}

// The description is removed first, so that a crash leaves no image.
Status RemoveFiles(FileSystem& files, const std::string& directory) {
  const auto entries = files.List(directory);
  if (entries.status().code() == StatusCode::kNotFound) return OkStatus();
  TROUPE_RETURN_IF_ERROR(entries.status());
  const Status described = files.Remove(JoinPath(directory, kDescriptionName));
  if (!described.ok() && described.code() != StatusCode::kNotFound) return described;
  for (const DirectoryEntry& entry : *entries) {
    if (entry.name == kDescriptionName) continue;
    TROUPE_RETURN_IF_ERROR(files.Remove(JoinPath(directory, entry.name)));
  }
  return files.SyncDirectory(directory);
}

// Returns the group epoch in the name of an image's directory; none for any other name.
std::optional<uint64_t> EpochOfName(std::string_view name) {
  constexpr std::string_view kEpoch = "-epoch-";
  const size_t at = name.find(kEpoch);
  if (!name.starts_with("step-") || at == std::string_view::npos) return std::nullopt;
  const char* const last = name.data() + name.size();
  uint64_t epoch = 0;
  const auto [end, error] = std::from_chars(name.data() + at + kEpoch.size(), last, epoch);
  const std::string_view rest(end, static_cast<size_t>(last - end));
  if (error != std::errc() || !rest.starts_with("-rank-")) return std::nullopt;
  return epoch;
}

}  // namespace

std::string ImageDirectory(const std::string& root, const std::string& job, int64_t step,
                           uint64_t group_epoch, int rank) {
  return fmt::format("{}/{}/step-{:08}-epoch-{}-rank-{:05}", root, job, step, group_epoch, rank);
}

StatusOr<std::string> WriteRankImage(FileSystem& files, const std::string& directory,
                                     v1::ImageManifest manifest,
                                     const std::vector<ShardTensor>& tensors) {
  TROUPE_RETURN_IF_ERROR(MakeDirectories(files, directory));
  TROUPE_RETURN_IF_ERROR(RemoveFiles(files, directory));
  TROUPE_ASSIGN_OR_RETURN(*manifest.mutable_shard(),
                          WriteShard(files, directory, manifest.rank(), tensors));
  manifest.set_format_version(kImageFormatVersion);
  TROUPE_ASSIGN_OR_RETURN(const std::string json, ToJson(manifest));
  TROUPE_RETURN_IF_ERROR(
      WriteFileDurably(files, JoinPath(directory, kDescriptionName), AsBytes(json)));
  return Sha256Of(AsBytes(json));
}

StatusOr<v1::CheckpointManifest> ReadRankImage(FileSystem& files, const std::string& directory,
                                               std::string_view digest) {
  const std::string path = JoinPath(directory, kDescriptionName);
  TROUPE_ASSIGN_OR_RETURN(const std::string json,
                          ReadFile(files, path, kDescriptionBytesMax, SymbolicLinks::kRefuse));
  if (const std::string actual = Sha256Of(AsBytes(json)); actual != digest) {
    return DataLoss("{}: digest {} is not {}, the recorded one", path, actual, digest);
  }
  v1::ImageManifest image;
  const auto parsed = google::protobuf::util::JsonStringToMessage(json, &image);
  if (!parsed.ok() || image.format_version() != kImageFormatVersion) {
    return DataLoss("{}: does not describe an image of format {}", path, kImageFormatVersion);
  }
  v1::CheckpointManifest manifest;
  manifest.set_format_version(kManifestFormatVersion);
  manifest.set_job(image.job());
  *manifest.mutable_state() = image.state();
  manifest.set_plan_digest(image.plan_digest());
  *manifest.add_shards() = std::move(*image.mutable_shard());
  if (image.has_samples()) *manifest.mutable_samples() = image.samples();
  return manifest;
}

StatusOr<std::vector<v1::HeldImage>> FindRankImages(FileSystem& files, const std::string& root) {
  std::vector<v1::HeldImage> found;
  const auto jobs = files.List(root);
  if (jobs.status().code() == StatusCode::kNotFound) return found;
  TROUPE_RETURN_IF_ERROR(jobs.status());
  for (const DirectoryEntry& job : *jobs) {
    if (job.kind != FileKind::kDirectory) continue;
    const std::string directory = JoinPath(root, job.name);
    TROUPE_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> images, files.List(directory));
    for (const DirectoryEntry& entry : images) {
      const std::optional<uint64_t> epoch = EpochOfName(entry.name);
      if (!epoch || entry.kind != FileKind::kDirectory) continue;
      v1::HeldImage& image = found.emplace_back();
      image.set_job(job.name);
      image.set_group_epoch(*epoch);
      image.set_path(JoinPath(directory, entry.name));
    }
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.path() < b.path(); });
  if (found.size() > kMostImagesFound) found.resize(kMostImagesFound);
  return found;
}

Status DeleteRankImage(FileSystem& files, const std::string& root, const std::string& directory) {
  const std::string name = directory.substr(directory.rfind('/') + 1);
  const bool is_image = directory.starts_with(root + "/") &&
                        directory.find("/../") == std::string::npos && name.starts_with("step-") &&
                        name.find("-rank-") != std::string::npos;
  if (!is_image) {
    return FailedPrecondition("delete {}: is not the image of a rank under {}", directory, root);
  }
  TROUPE_RETURN_IF_ERROR(RemoveFiles(files, directory));
  const Status removed = files.RemoveDirectory(directory);
  if (removed.code() == StatusCode::kNotFound) return OkStatus();
  TROUPE_RETURN_IF_ERROR(removed);
  return files.SyncDirectory(ParentDirectory(directory));
}

}  // namespace troupe
