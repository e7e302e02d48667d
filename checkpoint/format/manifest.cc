#include "checkpoint/format/manifest.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/durable_write.h"
#include "base/failpoint.h"
#include "checkpoint/format/digest.h"
#include "checkpoint/format/sample_channels.h"

namespace troupe {
namespace {

constexpr int kDimsMax = 16;

Status ValidateFileName(const std::string& name) {
  bool plain = !name.empty() && name.size() <= 255 && name.front() != '.' &&
               name != kManifestFileName && !name.ends_with(".tmp");
  for (const char c : name) {
    plain = plain && c > 0x20 && c < 0x7F && c != '/' && c != '\\' && c != '#' && c != '%';
  }
  if (plain) return OkStatus();
  return InvalidArgument("manifest: shard name \"{}\" is not a plain file name",
                         name.substr(0, 64));
}

Status ValidateShard(const v1::ShardFile& shard) {
  TROUPE_RETURN_IF_ERROR(ValidateFileName(shard.name()));
  const std::string where = "manifest: shard " + shard.name();
  if (shard.bytes() < 8) return InvalidArgument("{}: bytes {} is below 8", where, shard.bytes());
  if (shard.rank() < 0) return InvalidArgument("{}: rank {} is below 0", where, shard.rank());
  if (!IsXxh128(shard.digest())) {
    return InvalidArgument("{}: digest \"{}\" is not xxh128: followed by 32 digits", where,
                           shard.digest().substr(0, 80));
  }
  if (shard.block_crc32c_size() != DigestBlocks(shard.bytes())) {
    return InvalidArgument("{}: {} block checksums for {} bytes, must be {}", where,
                           shard.block_crc32c_size(), shard.bytes(), DigestBlocks(shard.bytes()));
  }
  for (const v1::TensorSlice& tensor : shard.tensors()) {
    if (tensor.global_shape_size() > kDimsMax) {
      return InvalidArgument("{}: global_shape has {} dims, above {}", where,
                             tensor.global_shape_size(), kDimsMax);
    }
    const GlobalSlice slice = SliceOf(tensor);
    TROUPE_RETURN_IF_ERROR(Annotate(ValidateSlice(slice), where));
    TROUPE_ASSIGN_OR_RETURN(const int64_t bytes, DenseBytes(slice.box.shape, slice.dtype));
    if (tensor.data_begin() < 0 || tensor.data_end() < tensor.data_begin() ||
        tensor.data_end() > shard.bytes() - 8 || tensor.data_end() - tensor.data_begin() != bytes) {
      return InvalidArgument(
          "{}: tensor {}: data [{}, {}) exceeds the file's {} bytes or differs from the {} bytes "
          "of its slice",
          where, tensor.name(), tensor.data_begin(), tensor.data_end(), shard.bytes(), bytes);
    }
  }
  return OkStatus();
}

struct Piece {
  GlobalSlice slice;
  const v1::ShardFile* shard;
};

// Returns the dim with the most distinct begins of pieces: sorted by it, few pieces overlap at a
// time.
size_t SweepDim(const std::vector<Piece>& pieces) {
  size_t best = 0, most = 0;
  for (size_t d = 0; d < pieces[0].slice.global_shape.size(); ++d) {
    std::set<int64_t> begins;
    for (const Piece& piece : pieces) begins.insert(piece.slice.box.offset[d]);
    if (begins.size() > most) {
      most = begins.size();
      best = d;
    }
  }
  return best;
}

// Checks that every element of one global tensor is in exactly one piece: no pieces overlap, and
// their sizes add up to the total.
Status ValidateCoverage(const std::string& name, std::vector<Piece>& pieces) {
  const GlobalSlice& first = pieces[0].slice;
  const int64_t total = *Elements(first.global_shape);
  int64_t sum = 0;
  for (const Piece& piece : pieces) {
    if (piece.slice.dtype != first.dtype || piece.slice.global_shape != first.global_shape) {
      return InvalidArgument("manifest: tensor {}: {} of {} in {} differs from {} of {} in {}",
                             name, ToString(piece.slice.global_shape), piece.slice.dtype,
                             piece.shard->name(), ToString(first.global_shape), first.dtype,
                             pieces[0].shard->name());
    }
    const int64_t elements = *Elements(piece.slice.box.shape);
    if (elements == 0 && total != 0) {
      return InvalidArgument("manifest: tensor {}: empty slice {} in {}", name,
                             ToString(piece.slice.box), piece.shard->name());
    }
    if (elements > total - sum) {
      return InvalidArgument("manifest: tensor {}: its slices have more than its {} elements", name,
                             total);
    }
    sum += elements;
  }
  if (sum != total) {
    return InvalidArgument("manifest: tensor {}: its slices have {} of its {} elements", name, sum,
                           total);
  }
  if (total == 0) {
    if (pieces.size() == 1) return OkStatus();
    return InvalidArgument("manifest: tensor {}: is empty but has {} slices", name, pieces.size());
  }
  if (first.global_shape.empty()) return OkStatus();  // a scalar in one piece
  const size_t dim = SweepDim(pieces);
  std::sort(pieces.begin(), pieces.end(), [&](const Piece& a, const Piece& b) {
    return a.slice.box.offset[dim] < b.slice.box.offset[dim];
  });
  std::vector<const Piece*> open;
  for (const Piece& piece : pieces) {
    const int64_t begin = piece.slice.box.offset[dim];
    std::erase_if(open, [&](const Piece* other) {
      return other->slice.box.offset[dim] + other->slice.box.shape[dim] <= begin;
    });
    for (const Piece* other : open) {
      if (Intersect(other->slice.box, piece.slice.box).has_value()) {
        return InvalidArgument("manifest: tensor {}: slice {} in {} overlaps {} in {}", name,
                               ToString(piece.slice.box), piece.shard->name(),
                               ToString(other->slice.box), other->shard->name());
      }
    }
    open.push_back(&piece);
  }
  return OkStatus();
}

}  // namespace

GlobalSlice SliceOf(const v1::TensorSlice& tensor) {
  return {.name = tensor.name(),
          .dtype = tensor.dtype(),
          .global_shape = {tensor.global_shape().begin(), tensor.global_shape().end()},
          .box = {.offset = {tensor.global_offset().begin(), tensor.global_offset().end()},
                  .shape = {tensor.shape().begin(), tensor.shape().end()}}};
}

std::vector<std::string> FileKeys(const std::vector<GlobalSlice>& slices) {
  std::map<std::string_view, int> counts;
  for (const GlobalSlice& slice : slices) ++counts[slice.name];
  std::vector<std::string> keys;
  keys.reserve(slices.size());
  for (const GlobalSlice& slice : slices) {
    keys.push_back(counts[slice.name] == 1
                       ? slice.name
                       : fmt::format("{}@{}", slice.name, fmt::join(slice.box.offset, ",")));
  }
  return keys;
}

Status ValidateManifest(const v1::CheckpointManifest& manifest) {
  if (manifest.format_version() != kManifestFormatVersion) {
    return InvalidArgument("manifest: format_version {} is not {}", manifest.format_version(),
                           kManifestFormatVersion);
  }
  if (manifest.state().step() < 0 || manifest.state().consumed_samples() < 0) {
    return InvalidArgument("manifest: state.step {} or state.consumed_samples {} is below 0",
                           manifest.state().step(), manifest.state().consumed_samples());
  }
  TROUPE_RETURN_IF_ERROR(Annotate(ValidateSampleChannels(manifest.samples()), "manifest"));
  if (manifest.shards().empty()) return InvalidArgument("manifest: it has no shards");
  std::set<std::string> names;
  std::map<std::string, std::vector<Piece>> tensors;
  for (const v1::ShardFile& shard : manifest.shards()) {
    TROUPE_RETURN_IF_ERROR(ValidateShard(shard));
    if (!names.insert(shard.name()).second) {
      return InvalidArgument("manifest: shard {} appears twice", shard.name());
    }
    for (const v1::TensorSlice& tensor : shard.tensors()) {
      tensors[tensor.name()].push_back({SliceOf(tensor), &shard});
    }
  }
  for (auto& [name, pieces] : tensors) {
    TROUPE_RETURN_IF_ERROR(ValidateCoverage(name, pieces));
  }
  return OkStatus();
}

Status MatchHeader(const v1::ShardFile& shard, const SafetensorsHeader& header) {
  std::vector<GlobalSlice> slices;
  for (const v1::TensorSlice& tensor : shard.tensors()) slices.push_back(SliceOf(tensor));
  const std::vector<std::string> keys = FileKeys(slices);
  std::map<std::string_view, const SafetensorsEntry*> entries;
  for (const SafetensorsEntry& entry : header.entries) entries[entry.name] = &entry;
  if (entries.size() != keys.size()) {
    return InvalidArgument("{}: has {} tensors, the manifest states {}", shard.name(),
                           entries.size(), keys.size());
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    const v1::TensorSlice& tensor = shard.tensors(static_cast<int>(i));
    const auto found = entries.find(keys[i]);
    if (found == entries.end()) {
      return InvalidArgument("{}: tensor {} of the manifest is missing from the file", shard.name(),
                             keys[i]);
    }
    const SafetensorsEntry& entry = *found->second;
    if (entry.dtype != tensor.dtype() || entry.shape != slices[i].box.shape ||
        entry.begin != tensor.data_begin() || entry.end != tensor.data_end()) {
      return InvalidArgument(
          "{}: tensor {}: its header states {} of {} at [{}, {}), the manifest {} of {} at [{}, "
          "{})",
          shard.name(), keys[i], ToString(entry.shape), entry.dtype, entry.begin, entry.end,
          ToString(slices[i].box.shape), tensor.dtype(), tensor.data_begin(), tensor.data_end());
    }
  }
  return OkStatus();
}

StatusOr<std::string> ManifestToJson(const v1::CheckpointManifest& manifest) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(manifest, &json, options);
  if (!status.ok()) return Internal("manifest to JSON: {}", status.ToString());
  return json;
}

StatusOr<v1::CheckpointManifest> ManifestFromJson(std::string_view json) {
  v1::CheckpointManifest manifest;
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(json.data(), json.size()), &manifest);
  if (!status.ok()) return InvalidArgument("manifest: {}", status.ToString());
  TROUPE_RETURN_IF_ERROR(ValidateManifest(manifest));
  return manifest;
}

StatusOr<WrittenManifest> WriteManifest(FileSystem& files, const std::string& directory,
                                        const v1::CheckpointManifest& manifest) {
  TROUPE_RETURN_IF_ERROR(HitFailpoint("checkpoint.manifest.begin"));
  TROUPE_RETURN_IF_ERROR(ValidateManifest(manifest));
  TROUPE_ASSIGN_OR_RETURN(const std::string json, ManifestToJson(manifest));
  WrittenManifest written{.digest = Sha256Of(AsBytes(json)),
                          .bytes = static_cast<int64_t>(json.size())};
  for (const v1::ShardFile& shard : manifest.shards()) written.bytes += shard.bytes();
  const std::string path = JoinPath(directory, kManifestFileName);
  const auto there = files.Stat(path, SymbolicLinks::kRefuse);
  if (there.ok()) {
    // The caller repeats a write if the first answer may have been lost.
    TROUPE_ASSIGN_OR_RETURN(const std::string old,
                            ReadFile(files, path, kManifestBytesMax, SymbolicLinks::kRefuse));
    if (Sha256Of(AsBytes(old)) != written.digest) {
      return AlreadyExists("{}: this attempt already has another manifest", path);
    }
    TROUPE_RETURN_IF_ERROR(files.SyncDirectory(directory));
    return written;
  }
  if (there.status().code() != StatusCode::kNotFound) return there.status();

  TROUPE_RETURN_IF_ERROR(WriteFileDurably(files, {path, AsBytes(json), CreateMode::kExclusive},
                                          {.failpoints = "checkpoint.manifest"}));
  return written;
}

StatusOr<v1::CheckpointManifest> ReadManifest(FileSystem& files, const std::string& directory,
                                              std::string_view digest) {
  const std::string path = JoinPath(directory, kManifestFileName);
  TROUPE_ASSIGN_OR_RETURN(const std::string json,
                          ReadFile(files, path, kManifestBytesMax, SymbolicLinks::kRefuse));
  if (!digest.empty()) {
    const std::string actual = Sha256Of(AsBytes(json));
    if (actual != digest) {
      return DataLoss("{}: digest {} is not {}, the committed one", path, actual, digest);
    }
  }
  StatusOr<v1::CheckpointManifest> manifest = ManifestFromJson(json);
  if (!manifest.ok()) return Annotate(manifest.status(), path);
  return manifest;
}

}  // namespace troupe
